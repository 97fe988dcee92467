//! IP payloads: finds the UDP datagram, Homa packet or ICMP error in an IP packet.

use std::net::{IpAddr, SocketAddr};

use etherparse::{Icmpv4Type, Icmpv6Type, IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// IP protocol number of the kernel profile. Source: docs/reference/homa-module.md, *Packet types*.
const HOMA: IpNumber = IpNumber(146);

/// Encapsulation of a datagram that may contain Homa packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encapsulation {
    /// IP protocol 146. Addresses have port 0, since the Homa header carries the ports.
    Homa,
    /// UDP.
    Udp,
}

/// Payload of an IP packet, with its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    pub carrier: Encapsulation,
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// IPv4's TOS or IPv6's traffic class.
    pub class: u8,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Length on the network in bytes, at least the length of `bytes`.
    pub len: usize,
}

/// Relevant content of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IpContent<'a> {
    /// A datagram.
    Datagram(Datagram<'a>),
    /// An ICMP error: a host or router could not deliver a datagram.
    Unreachable {
        /// Sender and receiver of the ICMP message; ports are 0.
        from: SocketAddr,
        to: SocketAddr,
        class: u8,
        /// Name of the unreachable thing, for instance `port`.
        what: &'static str,
        /// Leading bytes of the undelivered datagram.
        about: Datagram<'a>,
    },
}

/// Returns the datagram or ICMP error in an IP packet; `None` for any other payload.
pub(crate) fn ip_content<'a>(sliced: &LaxSlicedPacket<'a>) -> Option<IpContent<'a>> {
    let ip = Ip::of(sliced)?;
    match &sliced.transport {
        Some(TransportSlice::Icmpv4(icmp)) => {
            let Icmpv4Type::DestinationUnreachable(_) = icmp.icmp_type() else { return None };
            ip.unreachable(unreachable_v4(icmp.code_u8()), icmp.payload())
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            let Icmpv6Type::DestinationUnreachable(_) = icmp.icmp_type() else { return None };
            ip.unreachable(unreachable_v6(icmp.code_u8()), icmp.payload())
        }
        _ => ip.datagram(&sliced.transport).map(IpContent::Datagram),
    }
}

/// Names a code of ICMP type 3. Source: RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section
/// 5.2.7.1.
fn unreachable_v4(code: u8) -> &'static str {
    match code {
        0 | 6 | 11 => "network",
        2 => "protocol",
        3 => "port",
        9 | 10 | 13 => "prohibited destination",
        _ => "host",
    }
}

/// Names a code of ICMPv6 type 1. Source: RFC 4443 section 3.1.
fn unreachable_v6(code: u8) -> &'static str {
    match code {
        0 => "network",
        1 | 5 | 6 => "prohibited destination",
        4 => "port",
        _ => "host",
    }
}

/// Fields of the IP header.
#[derive(Clone, Copy)]
struct Ip<'a> {
    from: IpAddr,
    to: IpAddr,
    class: u8,
    protocol: IpNumber,
    payload: &'a [u8],
    /// Payload length on the network in bytes.
    len: usize,
}

impl<'a> Ip<'a> {
    /// Reads the IP header. Returns `None` for other network protocols, and for fragments: neither
    /// profile sends them.
    fn of(sliced: &LaxSlicedPacket<'a>) -> Option<Self> {
        let (from, to, class, payload, claimed): (IpAddr, IpAddr, _, _, _) = match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let extensions = ip.extensions().auth.map_or(0, |auth| auth.slice().len());
                let headers = header.slice().len() + extensions;
                let claimed = usize::from(header.total_len()).saturating_sub(headers);
                let class = header.dcp().value() << 2 | header.ecn().value();
                let (from, to) = (header.source_addr(), header.destination_addr());
                (from.into(), to.into(), class, ip.payload().clone(), claimed)
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let extensions = ip.extensions().slice().len();
                let claimed = usize::from(header.payload_length()).saturating_sub(extensions);
                let (from, to) = (header.source_addr(), header.destination_addr());
                (from.into(), to.into(), header.traffic_class(), ip.payload().clone(), claimed)
            }
            _ => return None,
        };
        if payload.fragmented {
            return None;
        }
        let len = claimed.max(payload.payload.len());
        Some(Self { from, to, class, protocol: payload.ip_number, payload: payload.payload, len })
    }

    fn datagram(self, transport: &Option<TransportSlice<'a>>) -> Option<Datagram<'a>> {
        let Self { from, to, class, .. } = self;
        let (from, to) = (SocketAddr::new(from, 0), SocketAddr::new(to, 0));
        match transport {
            Some(TransportSlice::Udp(udp)) => {
                let bytes = udp.payload();
                let claimed = usize::from(udp.length()).saturating_sub(8);
                let len = claimed.min(self.len.saturating_sub(8)).max(bytes.len());
                let from = SocketAddr::new(self.from, udp.source_port());
                let to = SocketAddr::new(self.to, udp.destination_port());
                Some(Datagram { carrier: Encapsulation::Udp, from, to, class, bytes, len })
            }
            None if self.protocol == HOMA => {
                let (bytes, len) = (self.payload, self.len);
                Some(Datagram { carrier: Encapsulation::Homa, from, to, class, bytes, len })
            }
            _ => None,
        }
    }

    /// Reads the IP packet that an ICMP message quotes.
    fn unreachable(self, what: &'static str, quoted: &'a [u8]) -> Option<IpContent<'a>> {
        let sliced = LaxSlicedPacket::from_ip(quoted).ok()?;
        let about = Ip::of(&sliced)?.datagram(&sliced.transport)?;
        let Self { from, to, class, .. } = self;
        let (from, to) = (SocketAddr::new(from, 0), SocketAddr::new(to, 0));
        Some(IpContent::Unreachable { from, to, class, what, about })
    }
}
