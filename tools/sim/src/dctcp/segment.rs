//! What does a segment carry?
//!
//! Positions in the stream instead of bytes: the simulator moves no payload. What a message is lies beside
//! them: a segment names the messages that end in it, so that the receiver learns of an end when the byte
//! before it arrives and not earlier.

use std::ops::Range;

use smallvec::SmallVec;

/// A position in a connection's stream of one direction; bytes since its beginning.
pub type Position = u64;

/// Bytes that a segment costs besides its payload and options: 20 (IPv4), 20 (TCP), 12 (timestamps) and
/// Ethernet's 38 (preamble 8, header 14, checksum 4, gap 12; IEEE 802.3).
const HEADERS: u32 = 20 + 20 + 12 + 38;

/// Most blocks of an ACK beside timestamps: 40 bytes of options less 12, 8 for each block. Source: RFC 2018
/// section 3.
pub(crate) const MAX_BLOCKS: usize = 3;

/// Where a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Position behind its last byte.
    pub at: Position,
    /// The message's number.
    pub number: u32,
}

/// What arrived beyond a gap, and what arrived twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// Whether the first block tells of a segment that had been there already (RFC 2883).
    pub duplicate: bool,
    /// The blocks; the one that grew last comes first.
    pub blocks: SmallVec<[Range<Position>; MAX_BLOCKS]>,
}

/// What a segment acknowledges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Everything before it has arrived.
    pub upto: Position,
    /// Whether the segments that it acknowledges were marked (ECN echo).
    pub echo: bool,
    /// What arrived out of order; boxed, as almost no segment has it.
    pub sack: Option<Box<Sack>>,
}

/// The body of a packet of DCTCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Position of its first byte.
    pub start: Position,
    /// Payload bytes; 0 in a segment that only acknowledges.
    pub len: u32,
    /// The messages that end in it, in order.
    pub ends: SmallVec<[End; 1]>,
    /// What it acknowledges.
    pub ack: Ack,
}

impl Segment {
    /// Bytes of the stream that it carries.
    #[must_use]
    pub fn range(&self) -> Range<Position> {
        self.start..self.start + u64::from(self.len)
    }

    /// Whether a message ends with it, so that its sender has nothing to add for the moment (PSH).
    #[must_use]
    pub fn is_pushed(&self) -> bool {
        self.ends.last().is_some_and(|end| end.at == self.range().end)
    }

    /// Bytes that it occupies on a link; Ethernet's minimum of 84 bytes is less than the headers.
    #[must_use]
    pub fn wire_bytes(&self) -> u32 {
        let blocks = self.ack.sack.as_ref().map_or(0, |sack| sack.blocks.len() as u32);
        let options = if blocks > 0 { 4 + 8 * blocks } else { 0 };
        HEADERS + options + self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dctcp::config::{FULL_FRAME, MSS};

    #[test]
    fn a_segment_costs_what_ethernet_says() {
        let full = Segment { len: MSS, ..Segment::default() };
        assert_eq!(u64::from(full.wire_bytes()), FULL_FRAME);
        assert_eq!(Segment::default().wire_bytes(), 90, "a pure ACK: 52 bytes padded to nothing");
        let sack = Sack { duplicate: false, blocks: [0..1, 4..5, 7..9].into_iter().collect() };
        let ack = Ack { sack: Some(Box::new(sack)), ..Ack::default() };
        let segment = Segment { ack, ..Segment::default() };
        assert_eq!(segment.wire_bytes(), 90 + 28, "12 + 28 bytes of options are all that TCP has");
    }
}
