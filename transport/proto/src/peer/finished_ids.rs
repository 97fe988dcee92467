//! The finished RPC ids of one client towards one server.
//!
//! Ids towards one server are dense in the udp profile (2 apart), so that the finished ones form a
//! few ranges: below `low` all ids are finished, and above it there are as many gaps as RPCs live
//! or given up. Both ends keep this set: the client for its low-water mark, the server to execute
//! each request at most once. In the kernel profile ids are not dense:
//! [`SparseIds`](super::SparseIds).
//!
//! # Invariants
//!
//! - **FINISHED-1** An id that was finished stays finished (requirement AMO-2).
//! - **FINISHED-2** There are at most [`MAX_ID_RANGES`] ranges above `low`.

use crate::limits::MAX_ID_RANGES;
use crate::ranges::Ranges;

/// A set of even ids that only grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct FinishedIds {
    /// All ids below twice this number are finished.
    low: u64,
    /// Halves of further finished ids.
    above: Ranges,
}

impl FinishedIds {
    /// Everything below `low` is finished.
    pub(crate) fn starting_at(low: u64) -> Self {
        Self { low: low / 2, above: Ranges::default() }
    }

    /// The lowest id that is not finished.
    pub(crate) const fn low(&self) -> u64 {
        self.low * 2
    }

    /// Whether `id` is finished.
    pub(crate) fn contains(&self, id: u64) -> bool {
        id / 2 < self.low || self.above.contains(id / 2)
    }

    /// Adds `id`. Returns whether the set occupies more memory than before.
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        let half = id / 2;
        if half == self.low {
            self.low += 1;
            self.absorb();
        } else if half > self.low {
            let before = self.above.memory();
            self.above.insert(half..half + 1);
            if self.above.count() > MAX_ID_RANGES {
                self.close_lowest_gap();
            }
            return self.above.memory() > before;
        }
        false
    }

    /// The memory of the ids that are kept one by one, in bytes.
    pub(crate) const fn memory(&self) -> usize {
        self.above.memory()
    }

    /// Closes all gaps: every id up to the highest finished one counts as finished.
    pub(crate) fn close_gaps(&mut self) {
        if let Some(last) = self.above.last() {
            self.raise_low(last.end * 2);
        }
    }

    /// Closes the lower half of the gaps.
    pub(crate) fn close_some_gaps(&mut self) {
        if let Some(middle) = self.above.middle() {
            self.raise_low(middle.end * 2);
        }
    }

    /// Adds all ids below `low`.
    pub(crate) fn raise_low(&mut self, low: u64) {
        if low / 2 > self.low {
            self.low = low / 2;
            self.above.remove_below(self.low);
            self.absorb();
        }
    }

    /// Lets `low` swallow a range that it touches.
    fn absorb(&mut self) {
        if let Some(first) = self.above.first()
            && first.start <= self.low
        {
            self.low = first.end;
            self.above.remove_below(first.end);
        }
    }

    /// FINISHED-2, CAP-11: gives the lowest ids that are neither finished nor known up; they will
    /// be refused.
    fn close_lowest_gap(&mut self) {
        if let Some(first) = self.above.first() {
            self.raise_low(first.end * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_that_finish_in_order_take_no_memory() {
        let mut ids = FinishedIds::starting_at(100);
        for id in (100..10_000).step_by(2) {
            ids.insert(id);
            assert_eq!(ids.above.count(), 0);
        }
        assert_eq!(ids.low(), 10_000);
    }

    #[test]
    fn one_call_that_lives_long_costs_one_range() {
        let mut ids = FinishedIds::starting_at(0);
        for id in (2..10_000).step_by(2) {
            ids.insert(id);
        }
        assert_eq!((ids.low(), ids.above.count()), (0, 1));
        ids.insert(0);
        assert_eq!((ids.low(), ids.above.count()), (10_000, 0));
    }

    /// Requirement CAP-11.
    #[test]
    fn too_many_gaps_are_closed_from_below() {
        let mut ids = FinishedIds::starting_at(0);
        for i in 1..=MAX_ID_RANGES as u64 + 1 {
            ids.insert(i * 4);
        }
        assert_eq!(ids.above.count(), MAX_ID_RANGES);
        assert!(ids.contains(2), "never seen, refused for safety");
        assert!(!ids.contains(6));
    }

    /// CAP-22: the memory of gaps is freed when they are closed.
    #[test]
    fn gaps_that_are_closed_take_no_memory() {
        let mut ids = FinishedIds::starting_at(0);
        let grew = (1..=1_000).filter(|i| ids.insert(i * 4)).count();
        assert!(grew < 40, "memory grows rarely: {grew}");
        assert!((16_000..=20_064).contains(&ids.memory()), "{}", ids.memory());
        ids.close_some_gaps();
        assert!(ids.contains(2_000) && !ids.contains(2_006) && ids.contains(4_000));
        assert!(ids.memory() <= 16_500, "{}", ids.memory());
        ids.close_gaps();
        assert!(ids.contains(3_998) && !ids.contains(4_002));
        assert!(ids.memory() <= 256, "{}", ids.memory());
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            steps in proptest::collection::vec((any::<bool>(), 0u64..80), 0..80),
        ) {
            let mut ids = FinishedIds::starting_at(20);
            let mut model: BTreeSet<u64> = (0..20).step_by(2).collect();
            for (raise, half) in steps {
                let id = half * 2;
                if raise && half % 8 == 0 {
                    ids.raise_low(id);
                    model.extend((0..id).step_by(2));
                } else {
                    ids.insert(id);
                    model.insert(id);
                }
                for id in (0..170).step_by(2) {
                    prop_assert_eq!(ids.contains(id), model.contains(&id), "{}", id);
                }
                let lowest = (0..).step_by(2).find(|id| !model.contains(id));
                prop_assert_eq!(Some(ids.low()), lowest);
            }
        }
    }
}
