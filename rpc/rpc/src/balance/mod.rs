//! Balancing: calls to any of several servers, and the names that they come from.

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

/// Where the addresses of servers come from.
pub mod names {
    #[cfg(feature = "discover")]
    pub use super::discover::Discover;
    pub use super::names_of_file::{file, parse};
    #[cfg(feature = "dns")]
    pub use super::names_of_host::{DnsError, dns, dns_at};
    pub use super::servers::{Servers, list, watch};
}
