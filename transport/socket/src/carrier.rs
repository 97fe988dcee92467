//! Carrier: the header between IP header and packet, and the place of the ports.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::address::{self, Family, RawAddress};

/// The protocol that carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// UDP: the system writes a header with the ports, and removes it.
    Udp,
    /// Raw IP: packets travel in IP packets of their own protocol, and start with source and
    /// destination port, two bytes each, as in TCP and UDP. All sockets of the protocol receive all
    /// its packets and ICMP errors; the ones for other ports are discarded.
    Ip {
        /// This driver's port; `None` for a driver of all ports.
        port: Option<u16>,
        /// Whether the driver listens on all addresses of the host.
        any: bool,
    },
}

/// The used fields of an IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv4Header {
    /// Length of the header in bytes, including options.
    pub(crate) len: usize,
    pub(crate) traffic_class: u8,
    pub(crate) to: Ipv4Addr,
}

impl Carrier {
    /// Returns the bytes between IP header and packet.
    pub(crate) const fn header(self) -> usize {
        match self {
            Self::Udp => 8,
            Self::Ip { .. } => 0,
        }
    }

    /// Returns the name of `to` on a socket of `family`; `None` if the socket cannot reach it.
    pub(crate) fn name(self, to: SocketAddr, family: Family) -> Option<RawAddress> {
        match self {
            Self::Udp => RawAddress::new(to, family),
            Self::Ip { .. } => {
                let mut to = address::canonical(to);
                // Raw IPv6 sockets require the protocol or 0 in place of the port (ipv6(7)). They
                // do not support mapped addresses.
                to.set_port(0);
                (Family::of(to) == family).then(|| RawAddress::new(to, family)).flatten()
            }
        }
    }

    /// Parses the IP header that the system leaves before a received packet. Raw IPv4 sockets
    /// receive it, raw IPv6 sockets do not (raw(7), ipv6(7)). `None` if there is none by design.
    ///
    /// # Errors
    ///
    /// [`InvalidHeader`] if a required header is missing or malformed.
    pub(crate) fn header_before(
        self,
        family: Family,
        bytes: &[u8],
    ) -> Result<Option<Ipv4Header>, InvalidHeader> {
        if self == Self::Udp || family == Family::V6 {
            return Ok(None);
        }
        let fixed: &[u8; 20] = bytes.first_chunk().ok_or(InvalidHeader)?;
        let len = usize::from(fixed[0] & 0x0f) * 4;
        if fixed[0] >> 4 != 4 || len < fixed.len() || len > bytes.len() {
            return Err(InvalidHeader);
        }
        let to = Ipv4Addr::from([fixed[16], fixed[17], fixed[18], fixed[19]]);
        Ok(Some(Ipv4Header { len, traffic_class: fixed[1], to }))
    }

    /// Returns the destination address of a received packet, if the driver listens on several.
    pub(crate) fn listens_at_all(self, to: Ipv4Addr) -> Option<IpAddr> {
        matches!(self, Self::Ip { any: true, .. }).then_some(to.into())
    }

    /// Returns the sender of `packet`, which the system received from `from`; `None` if the packet
    /// is for another driver.
    pub(crate) fn sender(self, from: SocketAddr, packet: &[u8]) -> Option<SocketAddr> {
        match self {
            Self::Udp => Some(from),
            Self::Ip { port, .. } => {
                let (sport, dport) = ports(packet)?;
                port.is_none_or(|port| dport == port).then(|| SocketAddr::new(from.ip(), sport))
            }
        }
    }

    /// Returns the destination and the first bytes of a packet that an ICMP error returned; `None`
    /// if another driver sent it. `to` is the destination according to the system, which removes
    /// the IP header for both families.
    pub(crate) fn returned(self, to: SocketAddr, beginning: &[u8]) -> Option<(SocketAddr, &[u8])> {
        match self {
            Self::Udp => Some((to, beginning)),
            Self::Ip { port, .. } => {
                let (sport, dport) = ports(beginning)?;
                (Some(sport) == port).then(|| (SocketAddr::new(to.ip(), dport), beginning))
            }
        }
    }
}

/// A received packet does not start with an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidHeader;

/// Returns source and destination port of a packet.
pub(crate) fn ports(packet: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *packet.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARRIER: Carrier = Carrier::Ip { port: Some(4000), any: true };

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
    fn an_invalid_ipv4_header_is_detected() {
        let good = v4_header(0);
        for cut in 0..good.len() {
            assert_eq!(CARRIER.header_before(Family::V4, &good[..cut]), Err(InvalidHeader));
        }
        for first in [0x65, 0x44, 0x4f] {
            let mut bad = good.clone();
            bad[0] = first;
            assert_eq!(CARRIER.header_before(Family::V4, &bad), Err(InvalidHeader), "{first:#x}");
        }
    }

    #[test]
    fn the_sender_has_the_port_in_the_packet() {
        let from = "10.0.0.2:0".parse().unwrap();
        assert_eq!(CARRIER.sender(from, &packet(7, 4000)), Some("10.0.0.2:7".parse().unwrap()));
        assert_eq!(CARRIER.sender(from, &packet(7, 4001)), None, "for another process");
        assert_eq!(CARRIER.sender(from, &[0, 7, 1]), None);
        let all = Carrier::Ip { port: None, any: true };
        assert_eq!(all.sender(from, &packet(7, 4001)), Some("10.0.0.2:7".parse().unwrap()));
        assert_eq!(Carrier::Udp.sender(from, &[]), Some(from));
    }

    #[test]
    fn a_returned_packet_names_its_destination_port() {
        let to = "10.0.0.2:0".parse().unwrap();
        let own = packet(4000, 7);
        let expected = ("10.0.0.2:7".parse().unwrap(), &own[..]);
        assert_eq!(CARRIER.returned(to, &own), Some(expected));
        assert_eq!(CARRIER.returned(to, &packet(4001, 7)), None, "of another process");
        assert_eq!(CARRIER.returned(to, &own[..3]), None);
        assert_eq!(Carrier::Ip { port: None, any: true }.returned(to, &own), None);
    }

    #[test]
    fn raw_sockets_use_names_of_their_family_without_port() {
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
