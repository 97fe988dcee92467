//! Segments of DCTCP.
//!
//! A segment has positions in the stream instead of bytes, because the simulator moves no payload.
//! It lists the messages that end in it, so that the receiver detects an end when its last byte
//! arrives and not earlier.

use std::ops::Range;

use smallvec::SmallVec;

/// Position in the stream of one direction, in bytes from its start.
pub type Position = u64;

/// Bytes of a segment in addition to its payload and options: 20 (IPv4), 20 (TCP), 12 (timestamps)
/// and Ethernet's 38 (preamble 8, header 14, checksum 4, gap 12; IEEE 802.3).
const HEADERS: u32 = 20 + 20 + 12 + 38;

/// Maximum number of blocks in an ACK with timestamps: 40 bytes of options less 12, 8 for each
/// block. Source: RFC 2018 section 3.
pub(crate) const MAX_BLOCKS: usize = 3;

/// End of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Position behind its last byte.
    pub at: Position,
    /// The message's number.
    pub number: u32,
}

/// Ranges that arrived beyond gaps, and a duplicate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// Whether the first block reports a duplicate (RFC 2883).
    pub duplicate: bool,
    /// The blocks; the block that grew last is first.
    pub blocks: SmallVec<[Range<Position>; MAX_BLOCKS]>,
}

/// Acknowledgement in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Everything before this position has arrived.
    pub upto: Position,
    /// Whether the acknowledged segments were marked (ECN echo).
    pub echo: bool,
    /// Ranges that arrived out of order; boxed, because few segments have them.
    pub sack: Option<Box<Sack>>,
}

/// Body of a DCTCP packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Position of its first byte.
    pub start: Position,
    /// Payload bytes; 0 in a pure ACK.
    pub len: u32,
    /// Messages that end in it, in order.
    pub ends: SmallVec<[End; 1]>,
    /// Its acknowledgement.
    pub ack: Ack,
}

impl Segment {
    /// Returns the range of the stream that it carries.
    #[must_use]
    pub fn range(&self) -> Range<Position> {
        self.start..self.start + u64::from(self.len)
    }

    /// Returns whether a message ends with it, so that its sender has no more data for now (PSH).
    #[must_use]
    pub fn is_pushed(&self) -> bool {
        self.ends.last().is_some_and(|end| end.at == self.range().end)
    }

    /// Returns its bytes on a link; Ethernet's minimum of 84 bytes is less than the headers.
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
    fn a_segment_has_the_size_of_the_standards() {
        let full = Segment { len: MSS, ..Segment::default() };
        assert_eq!(u64::from(full.wire_bytes()), FULL_FRAME);
        assert_eq!(Segment::default().wire_bytes(), 90, "a pure ACK: 52 bytes padded to nothing");
        let sack = Sack { duplicate: false, blocks: [0..1, 4..5, 7..9].into_iter().collect() };
        let ack = Ack { sack: Some(Box::new(sack)), ..Ack::default() };
        let segment = Segment { ack, ..Segment::default() };
        assert_eq!(segment.wire_bytes(), 90 + 28, "12 + 28 bytes of options are all that TCP has");
    }
}
