//! A set of numbers as ranges: the bytes of a message that must be sent again, and the finished ids
//! of a client, in the protocol core of [apus](https://docs.rs/apus).
//!
//! # Invariants
//!
//! - **RANGES-1** Ranges are half-open, not empty, in ascending order.
//! - **RANGES-2** No two ranges touch: between two neighbours at least one number is missing.

use std::ops::Range;

/// A set of numbers, kept as ascending ranges.
///
/// Used for the bytes of a message that must be retransmitted and for the finished RPC ids of a
/// peer. Both sets are usually empty, and otherwise a few ranges long, so that a sorted array is
/// faster than a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: Vec<Range<u64>>,
}

impl Ranges {
    /// Adds the numbers of `new`, which may be empty.
    pub(crate) fn insert(&mut self, new: Range<u64>) {
        if new.is_empty() {
            return;
        }
        // The ranges that `new` overlaps or touches are `first..last`.
        let first = self.ranges.partition_point(|range| range.end < new.start);
        let last = first + self.ranges[first..].partition_point(|range| range.start <= new.end);
        if first == last {
            if self.ranges.len() == self.ranges.capacity() {
                // Sets are bounded in memory: doubling would waste as much as they hold.
                self.ranges.reserve_exact(self.ranges.len() / 4 + 4);
            }
            self.ranges.insert(first, new);
        } else {
            let end = self.ranges[last - 1].end.max(new.end);
            let merged = &mut self.ranges[first];
            merged.start = merged.start.min(new.start);
            merged.end = end;
            self.ranges.drain(first + 1..last);
        }
        debug_assert!(self.is_sound(), "RANGES-1, RANGES-2");
    }

    /// Returns whether `number` is in the set.
    #[must_use]
    #[inline]
    pub(crate) fn contains(&self, number: u64) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(next).is_some_and(|range| range.start <= number)
    }

    /// Returns whether any number of `range` is in the set.
    #[must_use]
    #[inline]
    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        let next = self.ranges.partition_point(|each| each.end <= range.start);
        self.ranges.get(next).is_some_and(|each| each.start < range.end)
    }

    /// Removes all numbers below `limit`.
    pub(crate) fn remove_below(&mut self, limit: u64) {
        let gone = self.ranges.partition_point(|range| range.end <= limit);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(limit);
        }
        if self.ranges.capacity() > 2 * self.ranges.len() + 16 {
            self.ranges.shrink_to(self.ranges.len());
        }
        debug_assert!(self.is_sound(), "RANGES-1, RANGES-2");
    }

    /// Removes the numbers of `gone`.
    pub(crate) fn remove(&mut self, gone: Range<u64>) {
        if gone.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|range| range.end <= gone.start);
        let last = first + self.ranges[first..].partition_point(|range| range.start < gone.end);
        if first == last {
            return;
        }
        let before = self.ranges[first].start..gone.start;
        let after = gone.end..self.ranges[last - 1].end;
        let rest = [before, after].into_iter().filter(|range| range.start < range.end);
        self.ranges.splice(first..last, rest);
        debug_assert!(self.is_sound(), "RANGES-1, RANGES-2");
    }

    /// Adds the numbers between the two lowest ranges.
    pub(crate) fn fill_lowest_gap(&mut self) {
        if let [first, second, ..] = &mut self.ranges[..] {
            first.end = second.end;
            self.ranges.remove(1);
        }
    }

    /// Returns all ranges, in ascending order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().cloned()
    }

    /// Returns the number of numbers in the set.
    #[must_use]
    #[inline]
    pub(crate) fn sum(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the lowest range.
    #[must_use]
    #[inline]
    pub(crate) fn first(&self) -> Option<Range<u64>> {
        self.ranges.first().cloned()
    }

    /// Returns the highest range.
    #[must_use]
    #[inline]
    pub(crate) fn last(&self) -> Option<Range<u64>> {
        self.ranges.last().cloned()
    }

    /// Returns the range in the middle: half of the others are below it.
    pub(crate) fn middle(&self) -> Option<Range<u64>> {
        self.ranges.get(self.ranges.len() / 2).cloned()
    }

    /// Returns the memory that the set occupies, in bytes.
    #[inline]
    pub(crate) const fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<Range<u64>>()
    }

    /// Returns the number of ranges.
    #[must_use]
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.ranges.len()
    }

    fn is_sound(&self) -> bool {
        self.ranges.iter().all(|range| range.start < range.end)
            && self.ranges.windows(2).all(|pair| pair[0].end < pair[1].start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64),
        RemoveBelow(u64),
        Remove(u64, u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..100, 0u64..12).prop_map(|(start, len)| Step::Insert(start, start + len)),
            1 => (0u64..100).prop_map(Step::RemoveBelow),
            2 => (0u64..100, 0u64..12).prop_map(|(start, len)| Step::Remove(start, start + len)),
        ]
    }

    proptest! {
        /// The model is the plain set of the numbers.
        #[test]
        fn behaves_like_a_set_of_numbers(steps in proptest::collection::vec(step(), 0..60)) {
            let mut ranges = Ranges::default();
            let mut model = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Insert(start, end) => {
                        ranges.insert(start..end);
                        model.extend(start..end);
                    }
                    Step::Remove(start, end) => {
                        ranges.remove(start..end);
                        model.retain(|number| !(start..end).contains(number));
                    }
                    Step::RemoveBelow(limit) => {
                        ranges.remove_below(limit);
                        model.retain(|number| *number >= limit);
                    }
                }
                prop_assert!(ranges.is_sound());
                for number in 0..115 {
                    prop_assert_eq!(ranges.contains(number), model.contains(&number));
                }
                prop_assert_eq!(ranges.sum(), model.len() as u64);
                let first = ranges.first().map(|range| range.start);
                prop_assert_eq!(first, model.first().copied());
                let last = ranges.last().map(|range| range.end - 1);
                prop_assert_eq!(last, model.last().copied());
                for start in 0..115 {
                    let overlaps = model.range(start..start + 5).next().is_some();
                    prop_assert_eq!(ranges.overlaps(&(start..start + 5)), overlaps);
                }
            }
        }
    }
}
