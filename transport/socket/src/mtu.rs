//! Longest packet to a peer.
//!
//! Sockets never fragment (IP_PMTUDISC_DO, `WIRE-25`), so the longest packet is the path's MTU less
//! the headers. The system learns a path's MTU from the interface and from routers that report a
//! smaller one (RFC 1191, RFC 8201), and returns it only for connected sockets.

use std::net::{IpAddr, SocketAddr};

use crate::carrier::Carrier;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes of an IPv4 header without options, and of an IPv6 header.
const IP_HEADER: (usize, usize) = (20, 40);

/// Length of an IP packet that passes on any path. RFC 8200 section 5 requires it of every IPv6
/// path; IPv4 paths with a smaller MTU have not been seen in datacenters.
pub(crate) const MINIMUM: usize = 1280;

/// Longest packets that the driver sends, without the headers of IP and carrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketLimit {
    max_ip_packet: usize,
    carrier: Carrier,
}

impl PacketLimit {
    /// Returns the limit for IP packets of up to `max_ip_packet` bytes, including the IP header and
    /// the carrier's header.
    #[must_use]
    pub(crate) fn new(max_ip_packet: usize, carrier: Carrier) -> Self {
        Self { max_ip_packet, carrier }
    }

    /// Returns the maximum on any path to `to`.
    #[inline]
    pub(crate) fn max(self, to: SocketAddr) -> usize {
        self.max_ip_packet - self.headers(to.ip())
    }

    /// Returns the maximum on the path to `to`, as far as the system knows.
    pub(crate) fn on_path(self, to: SocketAddr) -> usize {
        let to = crate::address::canonical(to);
        let mtu = path_mtu(to).unwrap_or(MINIMUM);
        mtu.min(self.max_ip_packet).saturating_sub(self.headers(to.ip())).max(1)
    }

    /// Returns the bytes before the packet.
    fn headers(self, ip: IpAddr) -> usize {
        self.carrier.header() + if ip.is_ipv4() { IP_HEADER.0 } else { IP_HEADER.1 }
    }
}

/// Returns the MTU that a socket connected to `to` reports.
fn path_mtu(to: SocketAddr) -> Option<usize> {
    // A UDP socket for either carrier: the path is the same, and the port does not matter.
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP)).ok()?;
    socket.connect(&to.into()).ok()?;
    let mtu = match to {
        SocketAddr::V4(_) => sockopt::ip_mtu(&socket),
        SocketAddr::V6(_) => sockopt::ipv6_mtu(&socket),
    };
    usize::try_from(mtu.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_caps_the_mtu_of_the_path() {
        let limit = PacketLimit::new(9000, Carrier::Udp);
        assert_eq!(limit.on_path("127.0.0.1:9".parse().unwrap()), 9000 - 28);
        assert_eq!(limit.on_path("[::ffff:127.0.0.1]:9".parse().unwrap()), 9000 - 28);
    }

    #[test]
    fn without_a_route_the_limit_is_conservative() {
        let limit = PacketLimit::new(9000, Carrier::Udp);
        // Connecting to a broadcast address is refused.
        let nowhere = "255.255.255.255:9".parse().unwrap();
        assert_eq!(limit.on_path(nowhere), MINIMUM - 28);
    }
}
