//! Control messages: building and parsing.
//!
//! A control message is a header (length, level, type) and data, padded to the size of a word
//! (cmsg(3)). Building and parsing work on plain bytes, and never access memory outside them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::Family;

/// Bytes of a word: the unit of padding, and the size of the length field.
const WORD: usize = size_of::<usize>();

/// Bytes of a header, padded: length, level, type.
const HEADER_LEN: usize = padded(WORD + 2 * size_of::<libc::c_int>());

/// Bytes of control messages for one send: segment size, traffic class, and source address.
pub(crate) const SEND_SPACE: usize = space(2) + space(4) + space(20);

/// Bytes of control messages for one receive: segment size, traffic class, destination address, and
/// the socket's drop counter; from the error queue also the error and its origin. The size is
/// increased by half for additions of future kernels.
pub(crate) const CONTROL_SPACE: usize =
    (space(4) + space(4) + space(20) + space(4) + space(16 + 28)) / 2 * 3;

/// Returns the bytes that a message with `len` bytes of data takes (`CMSG_SPACE`).
const fn space(len: usize) -> usize {
    HEADER_LEN + padded(len)
}

const fn padded(len: usize) -> usize {
    len.next_multiple_of(WORD)
}

/// Control messages for one send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    bytes: [u8; SEND_SPACE],
    len: usize,
}

impl Control {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; SEND_SPACE], len: 0 }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Adds the segment size: the kernel cuts the data into packets of `len` bytes.
    pub(crate) fn segment(&mut self, len: usize) {
        let len = u16::try_from(len).expect("a packet is shorter than 64 KiB");
        self.push(libc::SOL_UDP, libc::UDP_SEGMENT, &len.to_ne_bytes());
    }

    /// Adds the traffic class of this send. `peer` is the family of the peer, not of the socket:
    /// the kernel treats packets to IPv4 peers of an IPv6 socket as IPv4 packets.
    pub(crate) fn traffic_class(&mut self, class: u8, peer: Family) {
        let (level, kind) = match peer {
            Family::V4 => (libc::IPPROTO_IP, libc::IP_TOS),
            Family::V6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        self.push(level, kind, &libc::c_int::from(class).to_ne_bytes());
    }

    /// Adds the local address to send from, which has the peer's family.
    pub(crate) fn source(&mut self, source: IpAddr) {
        match source {
            IpAddr::V4(ip) => {
                // struct in_pktinfo: interface, local address, header's destination address.
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&ip.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            IpAddr::V6(ip) => {
                // struct in6_pktinfo: address, interface.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&ip.octets());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
    }

    fn push(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let message = &mut self.bytes[self.len..][..space(data.len())];
        message.fill(0);
        message[..WORD].copy_from_slice(&(HEADER_LEN + data.len()).to_ne_bytes());
        message[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        message[WORD + 4..WORD + 8].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER_LEN..HEADER_LEN + data.len()].copy_from_slice(data);
        self.len += space(data.len());
    }
}

/// Returns the control messages in `bytes`, up to the first malformed one.
pub(crate) fn parse(bytes: &[u8]) -> Messages<'_> {
    Messages { rest: bytes }
}

/// One control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) level: libc::c_int,
    pub(crate) kind: libc::c_int,
    pub(crate) data: &'a [u8],
}

/// Iterates over control messages; ends at a malformed one.
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    #[inline]
    fn next(&mut self) -> Option<Message<'a>> {
        let len = usize::from_ne_bytes(*self.rest.first_chunk()?);
        let level = libc::c_int::from_ne_bytes(*self.rest.get(WORD..)?.first_chunk()?);
        let kind = libc::c_int::from_ne_bytes(*self.rest.get(WORD + 4..)?.first_chunk()?);
        let data = self.rest.get(HEADER_LEN..len)?;
        // The padding of the last message may be missing. `len` is within bounds here, so no
        // addition overflows.
        self.rest = self.rest.get(padded(len)..).unwrap_or_default();
        Some(Message { level, kind, data })
    }
}

/// Metadata of a received datagram, from its control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// Bytes of each packet but the last, if the datagram was merged.
    pub(crate) segment: Option<usize>,
    /// Traffic class byte; 0 if the kernel does not report it.
    pub(crate) traffic_class: u8,
    /// Destination address of the datagram.
    pub(crate) to: Option<IpAddr>,
    /// Datagrams dropped because the socket's buffer was full, since it was opened, modulo 2^32.
    /// Reported only if there were any.
    pub(crate) overflowed: Option<u32>,
}

impl Metadata {
    /// Reads the known control messages.
    #[inline]
    pub(crate) fn read(control: &[u8]) -> Self {
        let mut metadata = Self::default();
        for Message { level, kind, data } in parse(control) {
            match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    // A byte from IPv4, an int from IPv6.
                    metadata.traffic_class = match data.first_chunk() {
                        Some(int) => libc::c_int::from_ne_bytes(*int).to_le_bytes()[0],
                        None => data.first().copied().unwrap_or(0),
                    };
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    metadata.segment = int(data).and_then(|len| usize::try_from(len).ok());
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let ip = data.get(8..).and_then(|rest| rest.first_chunk::<4>());
                    metadata.to = ip.map(|ip| Ipv4Addr::from(*ip).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let ip = data.first_chunk::<16>();
                    metadata.to = ip.map(|ip| IpAddr::from(Ipv6Addr::from(*ip)).to_canonical());
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    metadata.overflowed = int(data).map(i32::cast_unsigned);
                }
                _ => {}
            }
        }
        metadata
    }
}

fn int(data: &[u8]) -> Option<libc::c_int> {
    data.first_chunk().map(|bytes| libc::c_int::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one message as the kernel would write it.
    fn message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let mut control = Control::new();
        control.push(level, kind, data);
        control.as_bytes().to_vec()
    }

    #[test]
    fn parsing_inverts_building() {
        let mut control = Control::new();
        control.segment(1400);
        control.traffic_class(0xb8, Family::V4);
        control.source("fd00::1".parse().unwrap());
        assert_eq!(control.as_bytes().len(), SEND_SPACE, "the space is exactly used");
        let kinds: Vec<_> = parse(control.as_bytes()).map(|m| (m.level, m.kind)).collect();
        let expected = [
            (libc::SOL_UDP, libc::UDP_SEGMENT),
            (libc::IPPROTO_IP, libc::IP_TOS),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO),
        ];
        assert_eq!(kinds, expected);
        let metadata = Metadata::read(control.as_bytes());
        assert_eq!(metadata.traffic_class, 0xb8);
        assert_eq!(metadata.to, Some("fd00::1".parse().unwrap()));
    }

    #[test]
    fn the_messages_of_a_receive_are_read() {
        let messages = [
            message(libc::SOL_UDP, libc::UDP_GRO, &1400_i32.to_ne_bytes()),
            message(libc::IPPROTO_IP, libc::IP_TOS, &[0x03]),
            message(libc::IPPROTO_IP, libc::IP_PKTINFO, &[0, 0, 0, 0, 9, 9, 9, 9, 10, 0, 0, 1]),
            message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7_u32.to_ne_bytes()),
        ];
        let expected = Metadata {
            segment: Some(1400),
            traffic_class: 0x03,
            to: Some("10.0.0.1".parse().unwrap()),
            overflowed: Some(7),
        };
        assert_eq!(Metadata::read(&messages.concat()), expected);
    }

    #[test]
    fn the_messages_of_an_ipv6_receive_are_read() {
        let mapped = "::ffff:10.0.0.1".parse::<Ipv6Addr>().unwrap();
        let info = [&mapped.octets()[..], &[0; 4]].concat();
        let messages = [
            message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &0xb9_i32.to_ne_bytes()),
            message(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info),
        ];
        let metadata = Metadata::read(&messages.concat());
        assert_eq!(metadata.traffic_class, 0xb9);
        assert_eq!(metadata.to, Some("10.0.0.1".parse().unwrap()), "no mapped address");
    }

    #[test]
    fn malformed_bytes_end_the_iteration() {
        let good = message(libc::IPPROTO_IP, libc::IP_TOS, &[0xff]);
        for len in [0, 1, HEADER_LEN - 1, good.len() + 1, usize::MAX, usize::MAX - 7] {
            let mut bad = good.clone();
            bad[..WORD].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(parse(&bad).count(), 0, "length {len}");
            let behind = [bad, good.clone()].concat();
            assert_eq!(parse(&behind).count(), usize::from(len == good.len() + 1), "length {len}");
            let before = [good.clone(), behind].concat();
            assert!(Metadata::read(&before).traffic_class == 0xff || len == good.len() + 1);
        }
        for cut in 0..good.len() {
            // Only the padding behind the data may be missing.
            assert_eq!(parse(&good[..cut]).count(), usize::from(cut > HEADER_LEN), "cut at {cut}");
        }
        assert_eq!(parse(&[0xff; 100]).count(), 0);
        assert_eq!(parse(&[0; 100]).count(), 0);
    }

    #[test]
    fn a_message_with_too_little_data_is_ignored() {
        for (level, kind) in [
            (libc::SOL_UDP, libc::UDP_GRO),
            (libc::IPPROTO_IP, libc::IP_TOS),
            (libc::IPPROTO_IP, libc::IP_PKTINFO),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL),
        ] {
            assert_eq!(Metadata::read(&message(level, kind, &[])), Metadata::default());
        }
        let negative = message(libc::SOL_UDP, libc::UDP_GRO, &(-1_i32).to_ne_bytes());
        assert_eq!(Metadata::read(&negative).segment, None);
    }
}
