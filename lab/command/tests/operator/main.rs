//! The operator's command `apus` between hosts, in networks of namespaces that the testbed builds.

mod doctor;
mod file_links;
mod file_rights;
mod file_service;
mod harness;
mod hosts;
mod offloads;
mod raw_ip;
