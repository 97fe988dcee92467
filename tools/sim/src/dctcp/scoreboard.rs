//! Scoreboard of the segments in flight.
//!
//! A segment is retransmitted with its original boundaries, so that it arrives as a whole or not at
//! all, and a block of a selective acknowledgement covers whole segments. Source of the states and
//! counts: Linux, `tcp_sacktag_*` and `tcp_packets_in_flight`; RFC 6675 section 2.
//!
//! # Invariants
//!
//! - SCOREBOARD-1: Segments are in the order of the stream, without gaps.
//! - SCOREBOARD-2: The counts are those of the flags: `sacked`, `lost`, and `again` among the lost
//!   ones.
//! - SCOREBOARD-3: A sacked segment is neither lost nor retransmitted; only lost segments are
//!   retransmitted.

use std::collections::VecDeque;
use std::ops::Range;

use super::segment::Position;
use apus_workload::time::Nanos;

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
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
    /// Whether it was ever sent twice, even as a probe: its ACK is no measurement.
    pub(super) ever_again: bool,
}

/// Segments that one ACK newly reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// Number of segments.
    pub(super) delivered: u32,
    /// Whether the first unacknowledged byte has moved.
    pub(super) advanced: bool,
    /// Whether a block beyond a gap reports any of them.
    pub(super) sacked: bool,
    /// Send time of the oldest one acknowledged in order; no measurement if any of them was sent
    /// twice.
    acked_from: Option<Nanos>,
    /// Send time of the oldest one beyond gaps.
    sacked_from: Option<Nanos>,
    /// Whether any of those acknowledged in order was sent twice.
    ambiguous: bool,
    /// Highest end of the segments.
    pub(super) highest: Position,
    /// Lowest end of the segments that were sent once.
    pub(super) lowest_once: Option<Position>,
}

impl News {
    /// Returns the send time of the segment that measures the round-trip time.
    pub(super) fn measure(&self) -> Option<Nanos> {
        if self.ambiguous { None } else { self.acked_from.or(self.sacked_from) }
    }

    fn arrived(&mut self, segment: &Sent) {
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
    segments: VecDeque<Sent>,
    sacked: u32,
    lost: u32,
    again: u32,
    /// All lost segments that wait for their retransmission begin here or later.
    repair_from: Position,
}

impl Scoreboard {
    /// Adds a segment that is sent for the first time.
    pub(super) fn push(&mut self, range: Range<Position>, now: Nanos) {
        debug_assert!(self.segments.back().is_none_or(|last| last.end == range.start), "B1");
        self.segments.push_back(Sent {
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

    /// Returns whether a lost segment waits for its retransmission.
    pub(super) const fn has_repair(&self) -> bool {
        self.lost > self.again
    }

    /// Returns whether this segment is lost and waits for its retransmission.
    pub(super) fn waits_for_repair(&self, index: usize) -> bool {
        let segment = &self.segments[index];
        segment.lost && !segment.again
    }

    pub(super) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Sent> {
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
        news: &mut News,
        mut seen: impl FnMut(&Sent),
    ) {
        while let Some(segment) = self.segments.front().copied().filter(|first| first.end <= upto) {
            self.segments.pop_front();
            news.advanced = true;
            news.ambiguous |= segment.ever_again;
            self.lost -= u32::from(segment.lost);
            self.again -= u32::from(segment.again);
            if segment.sacked {
                self.sacked -= 1;
                continue;
            }
            if !segment.ever_again {
                news.acked_from.get_or_insert(segment.at);
            }
            news.arrived(&segment);
            seen(&segment);
        }
    }

    /// Acknowledges the segments of a block; `seen` is called with each segment that is new.
    pub(super) fn sack(
        &mut self,
        block: &Range<Position>,
        news: &mut News,
        mut seen: impl FnMut(&Sent),
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
            news.sacked = true;
            if !segment.ever_again {
                news.sacked_from.get_or_insert(segment.at);
            }
            news.arrived(segment);
            seen(segment);
        }
    }

    /// Marks a segment as lost, unless it has arrived. One that was retransmitted has to be
    /// retransmitted once more.
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
    pub(super) fn find_again(&mut self) {
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
        let count = |what: fn(&Sent) -> bool| {
            self.segments.iter().filter(|segment| what(segment)).count() as u32
        };
        count(|segment| segment.sacked) == self.sacked
            && count(|segment| segment.lost) == self.lost
            && count(|segment| segment.again) == self.again
            && count(|segment| segment.sacked && (segment.lost || segment.again)) == 0
            && count(|segment| segment.again && !segment.lost) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns ten segments of ten bytes, the n-th sent at n.
    fn board() -> Scoreboard {
        let mut board = Scoreboard::default();
        for number in 0..10 {
            board.push(number * 10..number * 10 + 10, number);
        }
        board
    }

    #[test]
    fn a_repaired_segment_is_in_flight_again() {
        let mut board = board();
        let mut news = News::default();
        board.sack(&(30..60), &mut news, |_| {});
        assert_eq!((news.delivered, board.in_flight()), (3, 7));
        board.lose(1);
        board.lose(0);
        board.lose(3);
        assert_eq!((board.lost(), board.in_flight()), (2, 5), "an arrived segment is not lost");
        assert_eq!(board.repair(20), Some(0..10), "the lowest comes first");
        assert_eq!(board.repair(21), Some(10..20));
        assert_eq!(board.repair(22), None);
        assert_eq!(board.in_flight(), 7);
        board.lose(1);
        assert_eq!(board.repair(23), Some(10..20), "a lost retransmission");
        assert!(board.is_sound());
    }

    #[test]
    fn an_ack_counts_each_segment_once() {
        let mut board = board();
        let mut news = News::default();
        board.sack(&(30..60), &mut news, |_| {});
        board.sack(&(30..70), &mut news, |_| {});
        assert_eq!(news.delivered, 4);
        assert_eq!(news.measure(), Some(3));
        let mut news = News::default();
        board.lose(0);
        let mut seen = Vec::new();
        board.acknowledge(65, &mut news, |segment| seen.push(segment.start));
        assert_eq!(seen, [0, 10, 20]);
        assert_eq!((news.delivered, board.len(), board.sacked(), board.lost()), (3, 4, 1, 0));
        assert_eq!(news.measure(), Some(0));
        assert_eq!(news.lowest_once, Some(10));
        assert!(board.is_sound());
    }

    /// Karn's algorithm.
    #[test]
    fn a_segment_sent_twice_is_no_measurement() {
        let mut board = board();
        board.lose(0);
        board.repair(50);
        let mut news = News::default();
        board.acknowledge(30, &mut news, |_| {});
        assert_eq!(news.measure(), None);
        assert_eq!(news.delivered, 3);
    }
    #[derive(Clone, Debug)]
    enum Step {
        Push,
        /// Everything before this segment.
        Acknowledge(u64),
        /// From this segment on, this number of segments.
        Sack(u64, u64),
        Lose(usize),
        Repair,
        FindAgain,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Push),
            2 => (0u64..60).prop_map(Step::Acknowledge),
            3 => (0u64..60, 1u64..6).prop_map(|(first, count)| Step::Sack(first, count)),
            3 => (0usize..20).prop_map(Step::Lose),
            4 => Just(Step::Repair),
            1 => Just(Step::FindAgain),
        ]
    }

    proptest! {
        /// After any steps, the counts are those of the flags, each segment arrives once, and lost
        /// segments are repaired from the lowest on.
        #[test]
        fn counts_are_those_of_the_flags(steps in proptest::collection::vec(step(), 0..150)) {
            let mut board = Scoreboard::default();
            let (mut una, mut next, mut arrived) = (0, 0, 0);
            for (now, step) in (0..).zip(steps) {
                let mut news = News::default();
                match step {
                    Step::Push => {
                        board.push(next * 10..next * 10 + 10, now);
                        next += 1;
                    }
                    Step::Acknowledge(upto) if upto <= next => {
                        board.acknowledge(upto * 10, &mut news, |_| {});
                        una = una.max(upto);
                    }
                    Step::Sack(first, count) if first >= una && first + count <= next => {
                        board.sack(&(first * 10..(first + count) * 10), &mut news, |_| {});
                    }
                    Step::Lose(index) if index < board.len() as usize => board.lose(index),
                    Step::Repair => {
                        let waits = |index: &usize| board.waits_for_repair(*index);
                        let lowest = (0..board.len() as usize).find(waits);
                        let lowest = lowest.map(|index| board.get(index).unwrap().start);
                        prop_assert_eq!(board.repair(now).map(|range| range.start), lowest);
                    }
                    Step::FindAgain => board.find_again(),
                    _ => {}
                }
                arrived += u64::from(news.delivered);
                prop_assert!(board.is_sound(), "B2, B3");
                prop_assert_eq!(u64::from(board.len()), next - una);
                prop_assert_eq!(arrived, una + u64::from(board.sacked()));
            }
        }
    }
}
