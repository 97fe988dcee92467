//! What travels through the fabric?

use crate::message::HostId;

/// A packet, as links and switches see it. What its hosts make of it ([`crate::Host::Body`]) lies elsewhere:
/// a packet is looked at at every hop, its body at both ends only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub from: HostId,
    /// Where it goes.
    pub to: HostId,
    /// Bytes that it occupies on a link, headers, preamble and gap included.
    pub wire_bytes: u32,
    /// Payload bytes of messages in it; 0 in packets that only control.
    pub payload: u32,
    /// Level in the queues of switches, 0 to 7; 7 leaves first.
    pub priority: u8,
    /// Whether its sender understands congestion marks (ECN-capable transport).
    pub ecn_capable: bool,
    /// Whether a switch marked it (congestion experienced).
    pub marked: bool,
}
