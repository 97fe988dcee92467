//! Packets, as links and switches see them.

use crate::message::HostId;

/// A packet, as links and switches see it. The part that only hosts interpret
/// ([`crate::Host::Body`]) is stored separately: a packet is accessed at every hop, its body only
/// at the two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Sender.
    pub from: HostId,
    /// Destination.
    pub to: HostId,
    /// Distinguishes flows between two hosts, as ports do in a network. The upper byte is the
    /// process, the lower byte its source port, 0 for its own.
    pub flow: u16,
    /// Bytes on a link, headers, preamble and gap included.
    pub wire_bytes: u32,
    /// Payload bytes of messages; 0 in control packets.
    pub payload: u32,
    /// Level in the queues of switches, 0 to 7; 7 leaves first.
    pub priority: u8,
    /// Whether its sender reacts to congestion marks (ECN-capable transport).
    pub ecn_capable: bool,
    /// Whether a switch marked it (congestion experienced).
    pub marked: bool,
}
