//! Balancing: distributes calls over several servers, and resolves their names.
//!
//! Two servers are drawn, and the one whose outstanding calls take less time gets the call: round
//! robin delays every tenth call for one slow server of ten, and at microseconds load reports are
//! too old. A refusal ejects a server at once, three losses in a row do as well; an ejected server
//! is asked for its health. A draining server stays until 200 ms passed without a refusal, because
//! a call that arrives after its end is `Unknown`.

mod balancer;
#[cfg(feature = "discover")]
mod discover;
mod members;
mod names_of_file;
#[cfg(feature = "dns")]
mod names_of_host;
mod server;
mod servers;

pub use balancer::Balance;

/// Sources of server addresses.
pub mod names {
    #[cfg(feature = "discover")]
    pub use super::discover::Discover;
    pub use super::names_of_file::{file, parse};
    #[cfg(feature = "dns")]
    pub use super::names_of_host::{DnsError, dns, dns_at};
    pub use super::servers::{Servers, list, watch};
}
