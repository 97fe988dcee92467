//! Datagrams with the packets that wait for a host's link.
//!
//! Packets share datagrams as in the drivers (`transport/socket/src/staging.rs`, WIRE-29): a packet
//! joins the first datagram with room for it that has the same receiver and priority. It may
//! overtake packets that need a separate datagram.

use std::collections::VecDeque;

use apus_proto::Profile;
use apus_sim::message::HostId;
use apus_wire::{Body, MAX_PACKETS, Packet, announced_len};
use bytes::Bytes;

use super::stack::OutgoingPacket;

/// One or several packets that wait for the link.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) to: HostId,
    pub(super) priority: u8,
    /// Whether switches may mark it (ECN).
    pub(super) may_be_marked: bool,
    /// Bytes of the packets' headers, and of all the packets.
    pub(super) header_len: usize,
    pub(super) len: usize,
    /// Length of the longest datagram that the packets may share; 0 if the only packet needs a
    /// separate datagram.
    limit: usize,
    packets: Vec<Bytes>,
}

impl Datagram {
    fn has_room(&self, packet: &OutgoingPacket) -> bool {
        let is_same_flow = (self.to, self.priority, self.may_be_marked)
            == (packet.to, packet.priority, packet.may_be_marked);
        let shares = packet.coalesce > 0 && self.limit == packet.coalesce;
        let fits = self.len + packet.bytes.len() <= self.limit && self.packets.len() < MAX_PACKETS;
        is_same_flow && shares && fits
    }

    fn push(&mut self, packet: OutgoingPacket) {
        self.header_len += packet.header_len;
        self.len += packet.bytes.len();
        self.packets.push(packet.bytes);
    }

    /// Returns the concatenated packets.
    pub(super) fn into_bytes(mut self) -> Bytes {
        match self.packets.len() {
            1 => self.packets.remove(0),
            _ => self.packets.concat().into(),
        }
    }
}

/// Datagrams, in order of transmission.
#[derive(Debug, Default)]
pub(super) struct Datagrams(VecDeque<Datagram>);

impl Datagrams {
    /// Adds a packet to a datagram that has room for it, or as a new datagram.
    pub(super) fn push(&mut self, packet: OutgoingPacket) {
        let index = self.0.iter().position(|datagram| datagram.has_room(&packet));
        if let Some(datagram) = index.and_then(|index| self.0.get_mut(index)) {
            datagram.push(packet);
            return;
        }
        let OutgoingPacket { to, priority, may_be_marked, coalesce: limit, .. } = packet;
        let (header_len, len, packets) = (0, 0, Vec::new());
        let mut datagram =
            Datagram { to, priority, may_be_marked, header_len, len, limit, packets };
        datagram.push(packet);
        self.0.push_back(datagram);
    }

    pub(super) fn pop(&mut self) -> Option<Datagram> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all packets.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Splits a datagram before each packet that ends an RPC of an earlier packet in it. The events of
/// each part are handled before the next part is received, because the RPC of an event can be
/// looked up only while it lives.
pub(super) fn parts(profile: Profile, datagram: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut rest, mut len) = (Vec::new(), datagram, 0);
    let mut named = Vec::new();
    for packet in Packet::all(profile, datagram).filter_map(Result::ok) {
        if ended(&packet).iter().any(|id| named.contains(id)) {
            let (part, behind) = rest.split_at(len);
            parts.push(part);
            (rest, len) = (behind, 0);
            named.clear();
        }
        named.push(packet.header.sender_id.client_id());
        len += announced_len(&rest[len..]).unwrap_or(rest.len()).min(rest.len() - len);
    }
    parts.push(rest);
    parts
}

/// Returns the ids of the RPCs that a packet may end at a server.
fn ended(packet: &Packet<'_>) -> Vec<u64> {
    let own = packet.header.sender_id.client_id();
    match &packet.body {
        Body::Data(data, _) => data.ack.iter().map(|ack| ack.client_id).collect(),
        Body::Ack(list) => list.iter().map(|ack| ack.client_id).chain([own]).collect(),
        Body::RpcUnknown => vec![own],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use apus_wire::{Dialect, Header, MAX_HEADER_LEN, Role, SenderId, UdpFields};

    use super::*;

    fn packet(to: HostId, priority: u8, coalesce: usize, text: &'static str) -> OutgoingPacket {
        let bytes = Bytes::from_static(text.as_bytes());
        OutgoingPacket { to, priority, may_be_marked: false, bytes, header_len: 1, coalesce }
    }

    #[test]
    fn packets_of_one_flow_share_datagrams_if_they_may() {
        let mut datagrams = Datagrams::default();
        for (to, priority, coalesce, text) in [
            (1, 7, 6, "aa"),
            (1, 7, 6, "bbb"),
            (1, 6, 6, "c"),
            (2, 7, 6, "d"),
            (1, 7, 0, "e"),
            (1, 7, 6, "ff"),
            (1, 7, 6, "g"),
            (1, 7, 7, "h"),
        ] {
            datagrams.push(packet(to, priority, coalesce, text));
        }
        let texts: Vec<_> = std::iter::from_fn(|| datagrams.pop())
            .map(|datagram| {
                let (headers, len) = (datagram.header_len, datagram.len);
                (headers, len, datagram.into_bytes())
            })
            .collect();
        let expected: [(usize, &[u8]); 6] =
            [(3, b"aabbbg"), (1, b"c"), (1, b"d"), (1, b"e"), (1, b"ff"), (1, b"h")];
        assert_eq!(texts, expected.map(|(headers, text)| (headers, text.len(), text.into())));
    }

    #[test]
    fn an_ack_is_apart_from_the_request_that_it_acknowledges() {
        let packet = |id, body: Body<'_>| {
            let dialect = Dialect::Udp(UdpFields::default());
            let sender = SenderId::new(id, Role::Client);
            let header = Header::new(body.kind(), 1, 2, sender, dialect);
            let mut bytes = [0; MAX_HEADER_LEN];
            let len = Packet { header, body }.emit_header(&mut bytes);
            bytes[..len].to_vec()
        };
        let acks = || Body::Ack(apus_wire::AckList::EMPTY);
        let [busy, other, last] = [packet(2, Body::Busy), packet(4, acks()), packet(2, acks())];
        let datagram = [&busy[..], &other, &last, &last].concat();
        let first = [busy, other].concat();
        assert_eq!(parts(Profile::Udp, &datagram), [&first[..], &last, &last]);
        assert_eq!(parts(Profile::Udp, &first), [&first[..]]);
        assert_eq!(parts(Profile::Kernel, &datagram), [&datagram[..]]);
        assert_eq!(parts(Profile::Udp, b"?"), [b"?"]);
    }

    #[test]
    fn a_datagram_has_a_limited_number_of_packets() {
        let mut datagrams = Datagrams::default();
        (0..=MAX_PACKETS).for_each(|_| datagrams.push(packet(1, 7, 1_000, "a")));
        let lens: Vec<_> =
            std::iter::from_fn(|| datagrams.pop()).map(|datagram| datagram.len).collect();
        assert_eq!(lens, [MAX_PACKETS, 1]);
    }
}
