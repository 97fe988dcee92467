//! How long may a packet be?
//!
//! Sockets never fragment (IP_PMTUDISC_DO, `WIRE-25`), so the longest packet is what the path carries,
//! less the headers. The system knows a path's MTU from the interface's and from routers that
//! complained (RFC 1191, RFC 8201); it tells it for connected sockets only.

use std::net::{IpAddr, SocketAddr};

use crate::carrier::Carrier;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes of an IPv4 header without options, and of an IPv6 header.
const IP_HEADER: (usize, usize) = (20, 40);

/// An IP packet of this length passes where nothing is known. RFC 8200 section 5 demands it from every
/// IPv6 path; IPv4 paths that carry less have not been seen in datacenters.
pub(crate) const MINIMUM: usize = 1280;

/// Longest packets that the driver sends, headers of IP and carrier not included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketLimit {
    max_ip_packet: usize,
    carrier: Carrier,
}

impl PacketLimit {
    /// At most `max_ip_packet` bytes with the IP header and what `carrier` puts behind it.
    #[must_use]
    pub(crate) fn new(max_ip_packet: usize, carrier: Carrier) -> Self {
        Self { max_ip_packet, carrier }
    }

    /// The most that is tried on any path to `to`.
    #[inline]
    pub(crate) fn most(self, to: SocketAddr) -> usize {
        self.max_ip_packet - self.headers(to.ip())
    }

    /// The most that the path to `to` carries, as far as the system knows.
    pub(crate) fn on_path(self, to: SocketAddr) -> usize {
        let to = crate::address::canonical(to);
        let mtu = path_mtu(to).unwrap_or(MINIMUM);
        mtu.min(self.max_ip_packet).saturating_sub(self.headers(to.ip())).max(1)
    }

    /// Bytes before the packet.
    fn headers(self, ip: IpAddr) -> usize {
        self.carrier.header() + if ip.is_ipv4() { IP_HEADER.0 } else { IP_HEADER.1 }
    }
}

/// What a socket connected to `to` says.
fn path_mtu(to: SocketAddr) -> Option<usize> {
    // Of UDP, whatever carries the packets: paths do not differ, and the port does not matter.
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
    fn the_configuration_caps_what_the_path_carries() {
        let limit = PacketLimit::new(9000, Carrier::Udp);
        assert_eq!(limit.on_path("127.0.0.1:9".parse().unwrap()), 9000 - 28);
        assert_eq!(limit.on_path("[::ffff:127.0.0.1]:9".parse().unwrap()), 9000 - 28);
    }

    #[test]
    fn without_a_way_the_limit_is_a_cautious_one() {
        let limit = PacketLimit::new(9000, Carrier::Udp);
        // Connecting to a broadcast address is refused.
        let nowhere = "255.255.255.255:9".parse().unwrap();
        assert_eq!(limit.on_path(nowhere), MINIMUM - 28);
    }
}
