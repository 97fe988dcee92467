//! Hosts, which share the limits of their clients.

use std::net::IpAddr;

/// A host: an IPv4 address, or the 64 bits of an IPv6 address that name its network. A host has all
/// addresses of such a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Host(u128);

impl Host {
    /// Returns the host at an address.
    pub(super) fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().to_bits()),
            IpAddr::V6(v6) => Self(v6.to_bits() >> 64 << 64),
        }
    }
}
