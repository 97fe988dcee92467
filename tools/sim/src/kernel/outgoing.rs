//! Which bytes of a message from the module have left?
//!
//! A message is cut into segments once, with a boundary at the unscheduled limit (row P-1); what is sent again are
//! whole segments, with the ack that they carried the first time (row P-5).

use std::collections::BTreeMap;
use std::ops::Range;

use apus_wire::Ack;
use bytes::Bytes;

/// An outgoing message.
#[derive(Debug)]
pub(super) struct Outgoing {
    payload: Bytes,
    /// Bytes that leave without grants, and what first transmissions announce.
    pub(super) unscheduled: u32,
    granted: u32,
    pub(super) sent: u32,
    segment: u32,
    /// Level of scheduled packets, from the newest GRANT.
    pub(super) level: u8,
    resends: BTreeMap<u32, Again>,
    acks: BTreeMap<u32, Ack>,
}

/// How a segment is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) level: u8,
    /// The end of what was asked for.
    pub(super) incoming: u32,
}

impl Outgoing {
    pub(super) fn new(payload: Bytes, unscheduled: u32, segment: u32) -> Self {
        let unscheduled = unscheduled.min(payload.len() as u32);
        Self {
            payload,
            unscheduled,
            granted: unscheduled,
            sent: 0,
            segment,
            level: 0,
            resends: BTreeMap::new(),
            acks: BTreeMap::new(),
        }
    }

    pub(super) const fn length(&self) -> u32 {
        self.payload.len() as u32
    }

    pub(super) fn bytes(&self, range: &Range<u32>) -> Bytes {
        self.payload.slice(range.start as usize..range.end as usize)
    }

    /// Bytes left, if some may leave.
    pub(super) fn sendable(&self) -> Option<u32> {
        (self.sent < self.granted).then(|| self.length() - self.sent)
    }

    pub(super) const fn is_sent(&self) -> bool {
        self.sent == self.length()
    }

    pub(super) fn has_resends(&self) -> bool {
        !self.resends.is_empty()
    }

    pub(super) fn grant(&mut self, offset: u32) {
        self.granted = self.granted.max(offset.min(self.length()));
    }

    /// The next segment for the first time; it takes an ack along.
    pub(super) fn next(&mut self, ack: impl FnOnce() -> Option<Ack>) -> (Range<u32>, Option<Ack>) {
        let range = self.segment_at(self.sent);
        self.sent = range.end;
        let ack = ack();
        self.acks.extend(ack.map(|ack| (range.start, ack)));
        (range, ack)
    }

    /// The segments that touch `range` shall leave again, as far as they have left.
    pub(super) fn resend(&mut self, range: Range<u32>, level: u8) {
        let mut at = range.start;
        let again = Again { level, incoming: range.end.min(self.length()) };
        while at < range.end.min(self.sent) {
            let segment = self.segment_at(at);
            self.resends.insert(segment.start, again);
            at = segment.end;
        }
    }

    /// The next segment to leave again, with the ack that it carried.
    pub(super) fn next_resend(&mut self) -> Option<(Range<u32>, Again, Option<Ack>)> {
        let (start, again) = self.resends.pop_first()?;
        Some((self.segment_at(start), again, self.acks.get(&start).copied()))
    }

    /// The segment that holds byte `offset`.
    fn segment_at(&self, offset: u32) -> Range<u32> {
        let zone = if offset < self.unscheduled {
            0..self.unscheduled
        } else {
            self.unscheduled..self.length()
        };
        let start = offset - (offset - zone.start) % self.segment;
        start..(start + self.segment).min(zone.end)
    }
}
