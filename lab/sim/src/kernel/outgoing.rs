//! Transmission of a message by the module.
//!
//! A message is divided into segments once, with a boundary at the unscheduled limit
//! (HM `homa_outgoing.c` `homa_message_out_fill`). Whole segments are retransmitted, with the ack
//! that they carried the first time (HM `homa_outgoing.c` `homa_resend_data`).

use std::collections::BTreeMap;
use std::ops::Range;

use apus_wire::Ack;
use bytes::Bytes;

/// An outgoing message.
#[derive(Debug)]
pub(super) struct Outgoing {
    payload: Bytes,
    /// Bytes that leave without grants, announced in first transmissions.
    pub(super) unscheduled: u32,
    granted: u32,
    pub(super) sent: u32,
    segment: u32,
    /// Level of scheduled packets, from the newest GRANT.
    pub(super) level: u8,
    resends: BTreeMap<u32, Retransmission>,
    acks: BTreeMap<u32, Ack>,
}

/// Parameters of a retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    pub(super) level: u8,
    /// End of the requested range.
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

    /// Returns the bytes left, if some of them may leave.
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

    /// Returns the next segment to transmit for the first time. It carries an ack.
    pub(super) fn next(&mut self, ack: impl FnOnce() -> Option<Ack>) -> (Range<u32>, Option<Ack>) {
        let range = self.segment_at(self.sent);
        self.sent = range.end;
        let ack = ack();
        self.acks.extend(ack.map(|ack| (range.start, ack)));
        (range, ack)
    }

    /// Schedules the retransmission of the segments that overlap `range` and have been transmitted.
    pub(super) fn resend(&mut self, range: Range<u32>, level: u8) {
        let mut at = range.start;
        let again = Retransmission { level, incoming: range.end.min(self.length()) };
        while at < range.end.min(self.sent) {
            let segment = self.segment_at(at);
            self.resends.insert(segment.start, again);
            at = segment.end;
        }
    }

    /// Returns the next segment to retransmit, with the ack that it carried.
    pub(super) fn next_resend(&mut self) -> Option<(Range<u32>, Retransmission, Option<Ack>)> {
        let (start, again) = self.resends.pop_first()?;
        Some((self.segment_at(start), again, self.acks.get(&start).copied()))
    }

    /// Returns the segment that contains byte `offset`.
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
