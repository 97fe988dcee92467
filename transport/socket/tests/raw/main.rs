//! Tests of the raw IP driver: the conformance suite, and guarantees of this driver. They run in
//! separate network namespaces, and are skipped without the permission to create them.

mod conformance;
mod host;
mod icmp;
mod icmp_responder;
mod namespace;
mod port_prefix;
mod sharing;
mod socket;
mod unprivileged;
