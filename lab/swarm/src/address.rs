//! Addresses of packets: the endpoint that a [`HostId`] denotes.
//!
//! An honest host has one address, with the number of the host. A hostile host also has *aliases*:
//! endpoints with its IP address and other ports. The number of an alias has the port in its upper
//! half.

use std::net::SocketAddr;

use apus_sim::host::{self, PORT};
use apus_sim::message::HostId;

/// Bits of the number of a host. Fabrics have fewer hosts.
const HOST_BITS: u32 = 16;

/// Returns the number of an alias: a host's IP address, and the `number`th port after the usual
/// port.
pub(crate) const fn alias(host: HostId, number: u16) -> HostId {
    host | (number as HostId) << HOST_BITS
}

/// Returns the host that has the IP address of an endpoint.
pub(crate) const fn station(peer: HostId) -> HostId {
    peer & ((1 << HOST_BITS) - 1)
}

/// Returns the port of an endpoint.
pub(crate) const fn port(peer: HostId) -> u16 {
    PORT + (peer >> HOST_BITS) as u16
}

/// Returns the socket address of an endpoint.
pub(crate) fn address(peer: HostId) -> SocketAddr {
    let mut address = host::address(station(peer));
    address.set_port(port(peer));
    address
}

/// Returns the endpoint with this socket address.
pub(crate) fn host_at(address: SocketAddr) -> HostId {
    // Peers of the kernel profile have no port.
    alias(host::host_at(address), address.port().saturating_sub(PORT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_its_own_address() {
        assert_eq!(address(3), host::address(3));
        for peer in [0, 3, alias(3, 1), alias(40, 61_000)] {
            assert_eq!(host_at(address(peer)), peer);
            assert_eq!(address(peer).ip(), address(station(peer)).ip());
        }
    }
}
