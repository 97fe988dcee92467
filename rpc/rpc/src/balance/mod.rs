//! Balancing: distributes calls over several servers, and resolves their names.

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
