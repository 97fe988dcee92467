//! Reassembly of the stream, and detection of complete messages.
//!
//! # Invariants
//!
//! - **REASSEMBLY-1**: `beyond` holds ranges above `next`, in ascending order; no range touches
//!   another or `next`.
//! - **REASSEMBLY-2**: `ends` is ascending, and above the delivered positions.

use std::collections::VecDeque;
use std::ops::Range;

use smallvec::SmallVec;

use super::segment::{End, MAX_BLOCKS, Position, Sack, Segment};

/// Position of a segment relative to the received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next one, with no segment received beyond it.
    InOrder,
    /// The next one, with segments received beyond it.
    FillsGap,
    /// Beyond a gap.
    Beyond,
    /// Received before as a whole.
    Duplicate,
}

/// Stream of the receiving half.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// Everything before this position has arrived.
    next: Position,
    beyond: Vec<Range<Position>>,
    /// Starts of segments that arrived out of order, the latest first: they select the blocks of an
    /// ACK.
    recent: SmallVec<[Position; MAX_BLOCKS]>,
    /// Duplicate segments that have not been reported.
    duplicates: VecDeque<Range<Position>>,
    /// Ends of messages that have not been delivered.
    ends: VecDeque<End>,
}

impl Reassembly {
    pub(super) const fn next(&self) -> Position {
        self.next
    }

    /// Returns whether an ACK has blocks in addition to its position.
    pub(super) fn has_blocks(&self) -> bool {
        !self.beyond.is_empty() || !self.duplicates.is_empty()
    }

    /// Returns whether there are unreported duplicates.
    pub(super) fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// Classifies a segment.
    pub(super) fn fit(&self, range: &Range<Position>) -> Arrival {
        if range.end <= self.next {
            return Arrival::Duplicate;
        }
        if range.start <= self.next {
            return if self.beyond.is_empty() { Arrival::InOrder } else { Arrival::FillsGap };
        }
        let after = self.beyond.partition_point(|have| have.end < range.end);
        match self.beyond.get(after) {
            Some(have) if have.start <= range.start => Arrival::Duplicate,
            _ => Arrival::Beyond,
        }
    }

    /// Adds a segment.
    pub(super) fn insert(&mut self, segment: &Segment) -> Arrival {
        let range = segment.range();
        let arrival = self.fit(&range);
        match arrival {
            Arrival::Duplicate => {
                self.duplicates.push_back(range);
                return arrival;
            }
            Arrival::Beyond => self.insert_beyond(range),
            Arrival::InOrder => self.next = range.end,
            Arrival::FillsGap => self.fill(range.end),
        }
        for end in &segment.ends {
            self.note_end(*end);
        }
        arrival
    }

    fn insert_beyond(&mut self, new: Range<Position>) {
        self.recent.retain(|start| *start != new.start);
        self.recent.truncate(MAX_BLOCKS - 1);
        self.recent.insert(0, new.start);
        let first = self.beyond.partition_point(|have| have.end < new.start);
        let last = first + self.beyond[first..].partition_point(|have| have.start <= new.end);
        if first == last {
            self.beyond.insert(first, new);
            return;
        }
        let end = self.beyond[last - 1].end.max(new.end);
        let merged = &mut self.beyond[first];
        merged.start = merged.start.min(new.start);
        merged.end = end;
        self.beyond.drain(first + 1..last);
    }

    /// Advances the stream to `end`, and to the end of the range that touches it.
    fn fill(&mut self, end: Position) {
        self.next = end;
        let reached = self.beyond.partition_point(|have| have.start <= end);
        if let Some(last) = self.beyond[..reached].last() {
            self.next = self.next.max(last.end);
        }
        self.beyond.drain(..reached);
        let next = self.next;
        self.recent.retain(|start| *start > next);
    }

    fn note_end(&mut self, end: End) {
        let place = self.ends.partition_point(|have| have.at < end.at);
        if self.ends.get(place).is_none_or(|have| have.at != end.at) {
            self.ends.insert(place, end);
        }
    }

    /// Returns the next message that has arrived completely.
    pub(super) fn poll_delivered(&mut self) -> Option<u32> {
        let number = self.ends.front().filter(|end| end.at <= self.next)?.number;
        self.ends.pop_front();
        Some(number)
    }

    /// Returns the blocks of an ACK, including one duplicate. Source: RFC 2018 section 4 and RFC
    /// 2883 section 4.
    pub(super) fn take_blocks(&mut self) -> Option<Box<Sack>> {
        if !self.has_blocks() {
            return None;
        }
        let mut sack = Sack::default();
        if let Some(duplicate) = self.duplicates.pop_front() {
            sack.duplicate = true;
            sack.blocks.push(duplicate);
        }
        let first = sack.blocks.len();
        for start in &self.recent {
            let index = self.beyond.partition_point(|have| have.end <= *start);
            let block = self.beyond[index].clone();
            if sack.blocks.len() < MAX_BLOCKS && !sack.blocks[first..].contains(&block) {
                sack.blocks.push(block);
            }
        }
        Some(Box::new(sack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Returns a segment of ten bytes that is a whole message with this number.
    fn segment(number: u64) -> Segment {
        let (start, at) = (number * 10, number * 10 + 10);
        let end = End { at, number: number as u32 };
        Segment { start, len: 10, ends: [end].into_iter().collect(), ..Segment::default() }
    }

    fn blocks(reassembly: &mut Reassembly) -> Vec<(Position, Position)> {
        let sack = reassembly.take_blocks().unwrap_or_default();
        sack.blocks.iter().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn the_block_that_grew_last_comes_first() {
        let mut reassembly = Reassembly::default();
        for (number, expected) in [
            (2, vec![(20, 30)]),
            (4, vec![(40, 50), (20, 30)]),
            (6, vec![(60, 70), (40, 50), (20, 30)]),
            (8, vec![(80, 90), (60, 70), (40, 50)]),
            (3, vec![(20, 50), (80, 90), (60, 70)]),
        ] {
            assert_eq!(reassembly.insert(&segment(number)), Arrival::Beyond);
            assert_eq!(blocks(&mut reassembly), expected, "after {number}");
        }
        assert_eq!(reassembly.insert(&segment(0)), Arrival::FillsGap);
        assert_eq!(reassembly.next(), 10);
        assert_eq!(reassembly.insert(&segment(1)), Arrival::FillsGap);
        assert_eq!(reassembly.next(), 50);
        assert_eq!(blocks(&mut reassembly), [(80, 90), (60, 70)]);
    }

    #[test]
    fn each_duplicate_is_reported_once() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(&segment(0));
        reassembly.insert(&segment(2));
        assert_eq!(reassembly.insert(&segment(0)), Arrival::Duplicate);
        assert_eq!(reassembly.insert(&segment(2)), Arrival::Duplicate);
        assert_eq!(blocks(&mut reassembly), [(0, 10), (20, 30)]);
        assert_eq!(
            blocks(&mut reassembly),
            [(20, 30), (20, 30)],
            "two duplicates, one of them beyond a gap"
        );
        assert_eq!(blocks(&mut reassembly), [(20, 30)]);
    }

    proptest! {
        /// The model is the set of the segments. Whatever the order of arrival, each message is
        /// delivered once, in order, as soon as its predecessors are complete; blocks cover only
        /// data that has arrived.
        #[test]
        fn behaves_like_a_set_of_segments(arrivals in proptest::collection::vec(0u64..30, 0..120)) {
            let mut reassembly = Reassembly::default();
            let mut model = BTreeSet::new();
            let mut delivered = Vec::new();
            for number in arrivals {
                let known = !model.insert(number);
                let arrival = reassembly.insert(&segment(number));
                prop_assert_eq!(arrival == Arrival::Duplicate, known);
                let complete = (0..).take_while(|n| model.contains(n)).count() as u64;
                prop_assert_eq!(reassembly.next(), complete * 10);
                delivered.extend(std::iter::from_fn(|| reassembly.poll_delivered()));
                prop_assert_eq!(delivered.len() as u64, complete);
                let beyond = &reassembly.beyond;
                prop_assert!(beyond.windows(2).all(|pair| pair[0].end < pair[1].start), "REASSEMBLY-1");
                let held: u64 = beyond.iter().map(|have| have.end - have.start).sum();
                prop_assert_eq!(held / 10 + complete, model.len() as u64);
                for (start, end) in blocks(&mut reassembly) {
                    prop_assert!((start / 10..end / 10).all(|n| model.contains(&n)));
                }
            }
            prop_assert!(delivered.iter().copied().eq(0..delivered.len() as u32));
        }
    }
}
