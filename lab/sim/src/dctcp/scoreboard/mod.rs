//! Scoreboard of the segments in flight.
//!
//! A segment is retransmitted with its original boundaries, so that it arrives as a whole or not at
//! all, and a block of a selective acknowledgement covers whole segments. Source of the states and
//! counts: Linux, `tcp_sacktag_*` and `tcp_packets_in_flight`; RFC 6675 section 2.
//!
//! # Invariants
//!
//! - **SCOREBOARD-1**: Segments are in the order of the stream, without gaps.
//! - **SCOREBOARD-2**: The counts match the flags: `sacked`, `lost`, and `again` among the lost
//!   segments.
//! - **SCOREBOARD-3**: A sacked segment is neither lost nor retransmitted; only lost segments are
//!   retransmitted.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use crate::dctcp::segment::Position;
use apus_workload::time::Nanos;

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSegment {
    pub(super) start: Position,
    pub(super) end: Position,
    /// Time of the last transmission.
    pub(super) at: Nanos,
    /// Whether it has arrived beyond a gap.
    pub(super) sacked: bool,
    /// Whether it counts as lost.
    pub(super) lost: bool,
    /// Whether it was lost and has been retransmitted.
    again: bool,
    /// Whether it was ever sent twice, even as a probe: its ACK does not measure the round-trip
    /// time.
    pub(super) ever_again: bool,
}

/// Segments that one ACK newly reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewlyAcked {
    /// Number of segments.
    pub(super) delivered: u32,
    /// Whether the first unacknowledged byte has moved.
    pub(super) advanced: bool,
    /// Whether a block beyond a gap reports any of them.
    pub(super) sacked: bool,
    /// Send time of the oldest segment acknowledged in order; not a measurement if any of these
    /// segments was sent twice.
    acked_from: Option<Nanos>,
    /// Send time of the oldest segment beyond gaps.
    sacked_from: Option<Nanos>,
    /// Whether any segment acknowledged in order was sent twice.
    ambiguous: bool,
    /// Highest end of the segments.
    pub(super) highest: Position,
    /// Lowest end of the segments that were sent once.
    pub(super) lowest_once: Option<Position>,
}

impl NewlyAcked {
    /// Returns the send time of the segment that measures the round-trip time.
    pub(super) fn measure(&self) -> Option<Nanos> {
        if self.ambiguous { None } else { self.acked_from.or(self.sacked_from) }
    }

    fn arrived(&mut self, segment: &SentSegment) {
        self.delivered += 1;
        self.highest = self.highest.max(segment.end);
        if !segment.ever_again {
            let lowest = self.lowest_once.unwrap_or(segment.end);
            self.lowest_once = Some(lowest.min(segment.end));
        }
    }
}

/// Segments in flight.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<SentSegment>,
    sacked: u32,
    lost: u32,
    again: u32,
    /// All lost segments that await retransmission start here or later.
    repair_from: Position,
}

impl Scoreboard {
    /// Adds a segment that is sent for the first time.
    pub(super) fn push(&mut self, range: Range<Position>, now: Nanos) {
        debug_assert!(
            self.segments.back().is_none_or(|last| last.end == range.start),
            "SCOREBOARD-1"
        );
        self.segments.push_back(SentSegment {
            start: range.start,
            end: range.end,
            at: now,
            sacked: false,
            lost: false,
            again: false,
            ever_again: false,
        });
    }

    /// Returns the number of segments sent and not acknowledged in order.
    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the number of segments that are probably in the network.
    pub(super) fn in_flight(&self) -> u32 {
        self.len() - self.sacked - self.lost + self.again
    }

    /// Returns the number of segments beyond gaps.
    pub(super) const fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of lost segments, retransmitted or not.
    pub(super) const fn lost(&self) -> u32 {
        self.lost
    }

    /// Returns the number of retransmitted segments in flight.
    pub(super) const fn again(&self) -> u32 {
        self.again
    }

    /// Returns whether a lost segment awaits retransmission.
    pub(super) const fn has_repair(&self) -> bool {
        self.lost > self.again
    }

    /// Returns whether this segment is lost and awaits retransmission.
    pub(super) fn waits_for_repair(&self, index: usize) -> bool {
        let segment = &self.segments[index];
        segment.lost && !segment.again
    }

    pub(super) fn first(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    pub(super) fn get(&self, index: usize) -> Option<&SentSegment> {
        self.segments.get(index)
    }

    /// Returns the index of the first segment that ends behind a position.
    fn index_behind(&self, position: Position) -> usize {
        self.segments.partition_point(|segment| segment.end <= position)
    }

    /// Acknowledges everything before `upto`; `seen` is called with each segment that is new.
    pub(super) fn acknowledge(
        &mut self,
        upto: Position,
        newly_acked: &mut NewlyAcked,
        mut seen: impl FnMut(&SentSegment),
    ) {
        while let Some(segment) = self.segments.front().copied().filter(|first| first.end <= upto) {
            self.segments.pop_front();
            newly_acked.advanced = true;
            newly_acked.ambiguous |= segment.ever_again;
            self.lost -= u32::from(segment.lost);
            self.again -= u32::from(segment.again);
            if segment.sacked {
                self.sacked -= 1;
                continue;
            }
            if !segment.ever_again {
                newly_acked.acked_from.get_or_insert(segment.at);
            }
            newly_acked.arrived(&segment);
            seen(&segment);
        }
    }

    /// Acknowledges the segments of a block; `seen` is called with each segment that is new.
    pub(super) fn sack(
        &mut self,
        block: &Range<Position>,
        newly_acked: &mut NewlyAcked,
        mut seen: impl FnMut(&SentSegment),
    ) {
        let first = self.segments.partition_point(|segment| segment.start < block.start);
        for segment in self.segments.range_mut(first..) {
            if segment.end > block.end {
                break;
            }
            if segment.sacked {
                continue;
            }
            segment.sacked = true;
            self.sacked += 1;
            self.lost -= u32::from(std::mem::take(&mut segment.lost));
            self.again -= u32::from(std::mem::take(&mut segment.again));
            newly_acked.sacked = true;
            if !segment.ever_again {
                newly_acked.sacked_from.get_or_insert(segment.at);
            }
            newly_acked.arrived(segment);
            seen(segment);
        }
    }

    /// Marks a segment as lost, unless it has arrived. A retransmitted segment has to be
    /// retransmitted again.
    pub(super) fn lose(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.sacked || (segment.lost && !segment.again) {
            return;
        }
        self.again -= u32::from(std::mem::take(&mut segment.again));
        self.lost += u32::from(!segment.lost);
        segment.lost = true;
        self.repair_from = self.repair_from.min(segment.start);
    }

    /// Clears all loss marks.
    pub(super) fn clear_losses(&mut self) {
        for segment in &mut self.segments {
            segment.lost = false;
            segment.again = false;
        }
        self.lost = 0;
        self.again = 0;
    }

    /// Retransmits the next lost segment.
    pub(super) fn repair(&mut self, now: Nanos) -> Option<Range<Position>> {
        if !self.has_repair() {
            return None;
        }
        let first = self.index_behind(self.repair_from);
        let mut rest = self.segments.range_mut(first..);
        let segment = rest.find(|segment| segment.lost && !segment.again)?;
        segment.again = true;
        segment.ever_again = true;
        segment.at = now;
        self.again += 1;
        self.repair_from = segment.end;
        Some(segment.start..segment.end)
    }

    /// Retransmits the last segment as a probe.
    pub(super) fn probe(&mut self, now: Nanos) -> Option<Range<Position>> {
        let segment = self.segments.back_mut()?;
        segment.ever_again = true;
        segment.at = now;
        Some(segment.start..segment.end)
    }

    /// Returns whether SCOREBOARD-2 and SCOREBOARD-3 hold.
    #[cfg(test)]
    pub(super) fn is_sound(&self) -> bool {
        let count = |what: fn(&SentSegment) -> bool| {
            self.segments.iter().filter(|segment| what(segment)).count() as u32
        };
        count(|segment| segment.sacked) == self.sacked
            && count(|segment| segment.lost) == self.lost
            && count(|segment| segment.again) == self.again
            && count(|segment| segment.sacked && (segment.lost || segment.again)) == 0
            && count(|segment| segment.again && !segment.lost) == 0
    }
}
