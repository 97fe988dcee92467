//! The `apus` command, run as a shell runs it.

mod configuration;
mod decode;
mod doctor;
mod echo;
mod file_exports;
mod file_links;
mod file_mount_helper;
mod file_rights;
mod forward;
mod harness;
mod hosts;
mod invocations;
mod metrics;
mod raw_ip;
mod sealed_calls;
mod shell;
mod top;
mod trace_control;
mod traces;
