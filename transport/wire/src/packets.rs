//! The packets of one datagram.

use crate::ack::AckList;
use crate::data::Data;
use crate::error::ParseError;
use crate::header::Header;
use crate::kind::Kind;
use crate::packet::Packet;
use crate::profile::Profile;

/// Most packets of one datagram (`WIRE-29`). Chosen by us: the work per datagram stays bounded, and
/// a higher limit would bring no measurable gain.
pub const MAX_PACKETS: usize = 64;

/// The packets of a datagram, in their order. Source: requirement `WIRE-29`.
///
/// A malformed packet ends the datagram, because the start of the next one is unknown.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    profile: Profile,
    /// The unread bytes; `None` at the end.
    rest: Option<&'a [u8]>,
    /// Packets that may follow.
    left: usize,
}

impl<'a> Packet<'a> {
    /// Returns the packets of a datagram, in order (`WIRE-29`). In the kernel profile there is one,
    /// with all bytes.
    #[must_use]
    pub const fn all(profile: Profile, datagram: &'a [u8]) -> Packets<'a> {
        Packets::new(profile, datagram)
    }
}

impl<'a> Packets<'a> {
    pub(crate) const fn new(profile: Profile, datagram: &'a [u8]) -> Self {
        let left = match profile {
            Profile::Kernel => 1,
            Profile::Udp => MAX_PACKETS,
        };
        Self { profile, rest: Some(datagram), left }
    }

    /// Returns the bytes of the next packet, for [`Packet::parse`]; `None` at the end. The iterator
    /// does the same for a caller that can afford to move a parsed packet, which is long. A packet
    /// that is wrong is the last one: do not ask for more then.
    #[inline]
    pub fn next_bytes(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        self.left -= 1;
        let len = match self.profile {
            Profile::Kernel => rest.len(),
            Profile::Udp => announced_len(rest).map_or(rest.len(), |len| len.min(rest.len())),
        };
        let (bytes, behind) = rest.split_at(len);
        if !behind.is_empty() && self.left > 0 {
            self.rest = Some(behind);
        }
        Some(bytes)
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let packet = Packet::parse(self.profile, self.next_bytes()?);
        if packet.is_err() {
            self.rest = None;
        }
        Some(packet)
    }
}

/// Returns the length of the first packet of the udp profile, according to its header: the header
/// and, in DATA, the rest of the message. The packet is shorter if it does not extend to the end of
/// its message. `None` if the bytes do not start with a packet, or are too few.
#[must_use]
#[inline]
pub fn announced_len(bytes: &[u8]) -> Option<usize> {
    let kind = Header::peek_kind(bytes)?;
    if kind == Kind::Data {
        return Data::len_to_end(bytes);
    }
    match kind {
        Kind::Ack => AckList::len_by_count(bytes),
        kind => Some(kind.header_len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ack, Body, Dialect, Grant, MAX_HEADER_LEN, SenderId, UdpFields};

    fn header(kind: Kind) -> Header {
        let id = SenderId::from_wire(8);
        Header::new(kind, 1, 2, id, Dialect::Udp(UdpFields::default()))
    }

    fn write(datagram: &mut [u8], at: &mut usize, body: Body<'_>) {
        let mut buffer = [0; MAX_HEADER_LEN];
        let len = Packet { header: header(body.kind()), body }.emit_header(&mut buffer);
        datagram[*at..*at + len].copy_from_slice(&buffer[..len]);
        *at += len;
        if let Body::Data(_, payload) = body {
            datagram[*at..*at + payload.len()].copy_from_slice(payload);
            *at += payload.len();
        }
    }

    fn data(message_length: u32, offset: u32) -> Data {
        Data { offset, ..Data::first(message_length, message_length) }
    }

    /// Requirement WIRE-29.
    #[test]
    fn packets_follow_each_other_and_each_says_where_it_ends() {
        let mut acks = AckList::EMPTY;
        acks.push(Ack { client_id: 6, server_port: 1 }).unwrap();
        let bodies = [
            Body::Data(data(5, 0), b"short"),
            Body::Grant(Grant { offset: 9, priority: 3 }),
            Body::Ack(acks),
            Body::Ack(AckList::EMPTY),
            Body::Busy,
            Body::Data(data(0, 0), b""),
            Body::Data(data(1_000, 997), b"end"),
            Body::NeedAck,
            Body::Data(data(1_000, 0), b"the first of more"),
        ];
        let (mut datagram, mut at) = ([0; 600], 0);
        for body in bodies {
            write(&mut datagram, &mut at, body);
        }
        let mut packets = Packets::new(Profile::Udp, &datagram[..at]);
        for body in bodies {
            assert_eq!(packets.next().unwrap().unwrap().body, body);
        }
        assert!(packets.next().is_none());
    }

    /// Requirement WIRE-29.
    #[test]
    fn bytes_that_are_no_packet_end_the_datagram() {
        let (mut datagram, mut at) = ([0; 200], 0);
        write(&mut datagram, &mut at, Body::Busy);
        let mut packets = Packets::new(Profile::Udp, &datagram);
        assert!(packets.next().unwrap().is_ok());
        assert!(packets.next().unwrap().is_err());
        assert!(packets.next().is_none());
        assert!(matches!(
            Packets::new(Profile::Udp, &[]).next(),
            Some(Err(ParseError::TooShort { have: 0, .. }))
        ));
    }

    /// Requirement WIRE-29.
    #[test]
    fn a_datagram_has_no_more_than_64_packets() {
        let (mut datagram, mut at) = ([0; 65 * 28], 0);
        for _ in 0..65 {
            write(&mut datagram, &mut at, Body::Busy);
        }
        let packets = Packets::new(Profile::Udp, &datagram);
        assert_eq!(packets.filter(Result::is_ok).count(), MAX_PACKETS);
    }
}
