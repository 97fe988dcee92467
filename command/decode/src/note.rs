//! Notes and links: facts about a packet derived from earlier packets, and references to related
//! packets.

use crate::message::MessageKind;

/// Index of an RPC, in order of first appearance in the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RpcIndex(pub usize);

/// Facts about a packet derived from earlier packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note {
    /// The packet's RPC.
    pub rpc: RpcIndex,
    /// The message that the packet refers to.
    pub message_kind: MessageKind,
    /// Length of that message in bytes, if known.
    pub length: Option<u32>,
    /// DATA: bytes of the message seen so far, this packet included.
    pub seen: u64,
    /// DATA: bytes that earlier packets contained.
    pub repeated: u64,
    /// DATA: bytes not seen between the highest byte seen so far and this packet.
    pub gap: u64,
    /// DATA: distance from the sender's limit to the start of this packet, if it starts at or
    /// beyond the limit.
    pub beyond: Option<u64>,
    /// DATA: a different message length, from earlier packets. The other fields are then
    /// meaningless.
    pub length_was: Option<u32>,
    /// DATA: whether this packet completes the message for the first time.
    pub completes: bool,
    /// The first DATA packet of a response: nanoseconds since the first packet of the request.
    pub response_time: Option<i64>,
    /// The DATA packet that completes a response: nanoseconds since the first packet of the
    /// request.
    pub completion_time: Option<i64>,
    /// Retransmitted DATA: number of the last RESEND for the message, and nanoseconds since then.
    pub resend: Option<(u64, i64)>,
    /// GRANT: bytes that it adds to the sender's limit.
    pub granted: u64,
}

/// Record numbers of the packets linked to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// First packet of the request.
    pub request: Option<u64>,
    /// First packet of the response.
    pub response: Option<u64>,
    /// Packet that completes the message that the packet refers to.
    pub complete: Option<u64>,
    /// Packet that acknowledges the RPC.
    pub acked: Option<u64>,
    /// Server packet that refuses the RPC or declares it finished.
    pub refused: Option<u64>,
    /// ICMP error about the RPC.
    pub unreachable: Option<u64>,
}
