//! A captured packet.

use apus_wire::{Body, Kind, Profile};
use etherparse::{SlicedPacket, TransportSlice};
use serde::{Deserialize, Serialize};

/// A segment of TCP, or a datagram of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packet {
    /// Time of its arrival at the interface: nanoseconds of the system's clock.
    pub(super) at: u64,
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) content: Content,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content {
    /// A segment.
    Tcp {
        /// Number of its first byte.
        sequence: u32,
        /// Number of the next byte that the sender expects.
        acknowledged: u32,
        /// Payload bytes.
        bytes: u32,
        /// Whether it opens a connection.
        opens: bool,
        /// Whether it ends a connection.
        ends: bool,
    },
    /// A packet of apus in a datagram.
    Apus {
        /// Its type on the wire.
        kind: u8,
        /// The call that it belongs to.
        call: u64,
        /// Payload bytes.
        bytes: u32,
    },
}

impl Packet {
    /// Parses an Ethernet frame; `None` if it is neither a TCP segment nor a packet of apus.
    pub(super) fn parse(at: u64, frame: &[u8]) -> Option<Self> {
        let sliced = SlicedPacket::from_ethernet(frame).ok()?;
        match sliced.transport? {
            TransportSlice::Tcp(tcp) => Some(Self {
                at,
                from: tcp.source_port(),
                to: tcp.destination_port(),
                content: Content::Tcp {
                    sequence: tcp.sequence_number(),
                    acknowledged: tcp.acknowledgment_number(),
                    bytes: u32::try_from(tcp.payload().len()).ok()?,
                    opens: tcp.syn(),
                    ends: tcp.fin() || tcp.rst(),
                },
            }),
            TransportSlice::Udp(udp) => {
                let packet = apus_wire::Packet::parse(Profile::Udp, udp.payload()).ok()?;
                let bytes = match packet.body {
                    Body::Data(_, payload) => payload.len(),
                    _ => 0,
                };
                let content = Content::Apus {
                    kind: packet.body.kind() as u8,
                    call: packet.header.sender_id.client_id(),
                    bytes: u32::try_from(bytes).ok()?,
                };
                Some(Self { at, from: udp.source_port(), to: udp.destination_port(), content })
            }
            _ => None,
        }
    }
}

/// Returns the name of a packet type of apus in the protocol.
pub(super) fn kind_name(kind: u8) -> &'static str {
    match Kind::from_wire(kind) {
        Some(Kind::Data) => "DATA",
        Some(Kind::Grant) => "GRANT",
        Some(Kind::Resend) => "RESEND",
        Some(Kind::RpcUnknown) => "RPC_UNKNOWN",
        Some(Kind::Busy) => "BUSY",
        Some(Kind::Cutoffs) => "CUTOFFS",
        Some(Kind::Freeze) => "FREEZE",
        Some(Kind::NeedAck) => "NEED_ACK",
        Some(Kind::Ack) => "ACK",
        None => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader};

    #[test]
    fn a_segment_is_parsed_with_its_acknowledgement() {
        let builder = PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64)
            .tcp(40_000, 4_000, 1_000, 65_535)
            .ack(77);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[1, 2, 3, 4]).unwrap();
        // A short frame is padded in transit.
        frame.extend([0; 9]);
        let packet = Packet::parse(5, &frame).unwrap();
        assert_eq!((packet.at, packet.from, packet.to), (5, 40_000, 4_000));
        let (sequence, acknowledged, bytes) = (1_000, 77, 4);
        let expected = Content::Tcp { sequence, acknowledged, bytes, opens: false, ends: false };
        assert_eq!(packet.content, expected);
    }

    #[test]
    fn the_start_and_the_end_of_a_connection_are_recognised() {
        type TcpBuilder = PacketBuilderStep<TcpHeader>;
        let build = |flag: fn(TcpBuilder) -> TcpBuilder| {
            let builder = PacketBuilder::ethernet2([0; 6], [0; 6])
                .ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64)
                .tcp(1, 2, 3, 4);
            let mut frame = Vec::new();
            flag(builder).write(&mut frame, &[]).unwrap();
            match Packet::parse(0, &frame).unwrap().content {
                Content::Tcp { opens, ends, .. } => (opens, ends),
                content => panic!("{content:?}"),
            }
        };
        assert_eq!(build(TcpBuilder::syn), (true, false));
        assert_eq!(build(TcpBuilder::fin), (false, true));
        assert_eq!(build(TcpBuilder::rst), (false, true));
    }

    #[test]
    fn other_packets_are_left_out() {
        let builder = PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64)
            .udp(1, 2);
        let mut frame = Vec::new();
        builder.write(&mut frame, b"who is there?").unwrap();
        assert_eq!(Packet::parse(0, &frame), None);
        for length in 0..frame.len() {
            assert_eq!(Packet::parse(0, &frame[..length]), None);
        }
    }

    #[test]
    fn every_kind_has_its_name() {
        let names = Kind::ALL.map(|kind| kind_name(kind as u8));
        assert!(!names.contains(&"?") && kind_name(0) == "?");
    }
}
