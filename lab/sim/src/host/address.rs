//! Addresses of simulated hosts.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use crate::message::HostId;

/// UDP port of every endpoint.
pub const PORT: u16 = 4000;

/// Returns the address of a host: 10.x.y.z.
pub fn address(host: HostId) -> SocketAddr {
    let ip = Ipv4Addr::from((10 << 24) + host + 1);
    SocketAddr::V4(SocketAddrV4::new(ip, PORT))
}

/// Returns the host with this address.
pub fn host_at(address: SocketAddr) -> HostId {
    match address {
        SocketAddr::V4(address) => address.ip().to_bits() - (10 << 24) - 1,
        SocketAddr::V6(_) => unreachable!("hosts know each other by IPv4 addresses only"),
    }
}
