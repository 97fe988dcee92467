//! What lies between IP header and packet, and where are the ports?

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::address::{self, Family, RawAddress};

/// What carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// UDP: the system writes a header with the ports, and takes it off again.
    Udp,
    /// Nothing: packets lie in IP packets of a protocol of their own, and begin with their ports, source and
    /// destination, two bytes each, as those of TCP and UDP do. What comes to another port than this one is
    /// not ours, and an ICMP error about a packet from another one neither: all sockets of the protocol get
    /// all of that.
    Ip {
        /// Our port.
        port: u16,
        /// Whether we listen at all addresses of the host.
        any: bool,
    },
}

/// What an IPv4 header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv4Header {
    /// Its bytes, options included.
    pub(crate) len: usize,
    pub(crate) traffic_class: u8,
    pub(crate) to: Ipv4Addr,
}

impl Carrier {
    /// Bytes between IP header and packet.
    pub(crate) const fn header(self) -> usize {
        match self {
            Self::Udp => 8,
            Self::Ip { .. } => 0,
        }
    }

    /// The address as a socket of `family` must name it; `None` if it cannot.
    pub(crate) fn name(self, to: SocketAddr, family: Family) -> Option<RawAddress> {
        match self {
            Self::Udp => RawAddress::new(to, family),
            Self::Ip { .. } => {
                let mut to = address::canonical(to);
                // Where the port would be, raw sockets of IPv6 want the protocol or nothing: ipv6(7). They do not know
                // mapped addresses.
                to.set_port(0);
                (Family::of(to) == family).then(|| RawAddress::new(to, family)).flatten()
            }
        }
    }

    /// The header that the system leaves before what has arrived: raw sockets of IPv4 get it, those of IPv6 do
    /// not (raw(7), ipv6(7)). `None`: it leaves none; an error if there should be one and is not.
    pub(crate) fn header_before(
        self,
        family: Family,
        bytes: &[u8],
    ) -> Result<Option<Ipv4Header>, Nonsense> {
        if self == Self::Udp || family == Family::V6 {
            return Ok(None);
        }
        let fixed: &[u8; 20] = bytes.first_chunk().ok_or(Nonsense)?;
        let len = usize::from(fixed[0] & 0x0f) * 4;
        if fixed[0] >> 4 != 4 || len < fixed.len() || len > bytes.len() {
            return Err(Nonsense);
        }
        let to = Ipv4Addr::from([fixed[16], fixed[17], fixed[18], fixed[19]]);
        Ok(Some(Ipv4Header { len, traffic_class: fixed[1], to }))
    }

    /// The address that a packet was sent to, if it could be another one of ours.
    pub(crate) fn listens_at_all(self, to: Ipv4Addr) -> Option<IpAddr> {
        matches!(self, Self::Ip { any: true, .. }).then_some(to.into())
    }

    /// Who sent `packet`, which came from `from` as the system says; `None` if it is not for us.
    pub(crate) fn sender(self, from: SocketAddr, packet: &[u8]) -> Option<SocketAddr> {
        match self {
            Self::Udp => Some(from),
            Self::Ip { port, .. } => {
                let (sport, dport) = ports(packet)?;
                (dport == port).then(|| SocketAddr::new(from.ip(), sport))
            }
        }
    }

    /// Who was to get the packet that came back in an ICMP error, and its beginning; `None` if it was not ours.
    /// `to` is what the system says; it leaves no IP header there, whatever the family.
    pub(crate) fn returned(self, to: SocketAddr, beginning: &[u8]) -> Option<(SocketAddr, &[u8])> {
        match self {
            Self::Udp => Some((to, beginning)),
            Self::Ip { port, .. } => {
                let (sport, dport) = ports(beginning)?;
                (sport == port).then(|| (SocketAddr::new(to.ip(), dport), beginning))
            }
        }
    }
}

/// What has arrived does not begin with an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonsense;

/// Source and destination port of a packet.
fn ports(packet: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *packet.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARRIER: Carrier = Carrier::Ip { port: 4000, any: true };

    fn packet(sport: u16, dport: u16) -> Vec<u8> {
        [sport.to_be_bytes(), dport.to_be_bytes(), *b"he"].concat()
    }

    fn v4_header(options: usize) -> Vec<u8> {
        let mut header = vec![0; 20 + options];
        header[0] = 0x40 | u8::try_from(header.len() / 4).unwrap();
        header[1] = 0xe3;
        header[16..20].copy_from_slice(&[10, 0, 0, 1]);
        header
    }

    #[test]
    fn an_ipv4_header_is_found_with_its_options() {
        for options in [0, 4, 40] {
            let bytes = [v4_header(options), packet(1, 2)].concat();
            let header = CARRIER.header_before(Family::V4, &bytes).unwrap().unwrap();
            let to = Ipv4Addr::new(10, 0, 0, 1);
            assert_eq!(header, Ipv4Header { len: 20 + options, traffic_class: 0xe3, to });
        }
        assert_eq!(CARRIER.header_before(Family::V6, &packet(1, 2)), Ok(None));
        assert_eq!(Carrier::Udp.header_before(Family::V4, &[]), Ok(None));
    }

    #[test]
    fn what_is_no_ipv4_header_is_seen() {
        let good = v4_header(0);
        for cut in 0..good.len() {
            assert_eq!(CARRIER.header_before(Family::V4, &good[..cut]), Err(Nonsense));
        }
        for first in [0x65, 0x44, 0x4f] {
            let mut bad = good.clone();
            bad[0] = first;
            assert_eq!(CARRIER.header_before(Family::V4, &bad), Err(Nonsense), "{first:#x}");
        }
    }

    #[test]
    fn ports_are_those_of_the_packet() {
        let from = "10.0.0.2:0".parse().unwrap();
        assert_eq!(CARRIER.sender(from, &packet(7, 4000)), Some("10.0.0.2:7".parse().unwrap()));
        assert_eq!(CARRIER.sender(from, &packet(7, 4001)), None, "for another process");
        assert_eq!(CARRIER.sender(from, &[0, 7, 1]), None);
        assert_eq!(Carrier::Udp.sender(from, &[]), Some(from));
    }

    #[test]
    fn a_returned_packet_names_the_port_that_it_was_sent_to() {
        let to = "10.0.0.2:0".parse().unwrap();
        let ours = packet(4000, 7);
        let expected = ("10.0.0.2:7".parse().unwrap(), &ours[..]);
        assert_eq!(CARRIER.returned(to, &ours), Some(expected));
        assert_eq!(CARRIER.returned(to, &packet(4001, 7)), None, "of another process");
        assert_eq!(CARRIER.returned(to, &ours[..3]), None);
    }

    #[test]
    fn raw_sockets_are_given_addresses_of_their_family_without_port() {
        let name = |to: &str, family| {
            let name = CARRIER.name(to.parse().unwrap(), family)?;
            Some(address::parse(name.as_bytes()).unwrap().to_string())
        };
        assert_eq!(name("10.0.0.1:80", Family::V4).as_deref(), Some("10.0.0.1:0"));
        assert_eq!(name("[::ffff:10.0.0.1]:80", Family::V4).as_deref(), Some("10.0.0.1:0"));
        assert_eq!(name("[fd00::1]:80", Family::V6).as_deref(), Some("[fd00::1]:0"));
        assert_eq!(name("10.0.0.1:80", Family::V6), None);
        assert_eq!(name("[fd00::1]:80", Family::V4), None);
    }
}
