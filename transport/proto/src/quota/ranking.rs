//! The hosts by what they have of a budget: room is taken from the largest.
//!
//! # Invariants
//!
//! - **RANKING-1** Each host that has at least one unit is in the order once, with its number of
//!   whole units.

use std::collections::BTreeSet;

/// Hosts in the order of their size. Sizes are compared in units, so that most changes cost a
/// comparison.
#[derive(Debug)]
pub(crate) struct Ranking<H> {
    by_size: BTreeSet<(u64, H)>,
    unit: u64,
}

impl<H: Copy + Ord> Ranking<H> {
    /// An empty order that compares sizes in units of `unit`.
    pub(crate) const fn new(unit: u64) -> Self {
        assert!(unit > 0, "a size is a number of units");
        Self { by_size: BTreeSet::new(), unit }
    }

    /// The size of `host` changes from `before` to `after`; 0 of both if it has nothing.
    #[inline]
    pub(crate) fn change(&mut self, host: H, before: u64, after: u64) {
        let (before, after) = (before / self.unit, after / self.unit);
        if before != after {
            self.put(host, before, after);
        }
    }

    // Rare; inlined, it would take registers from every change.
    #[inline(never)]
    fn put(&mut self, host: H, before: u64, after: u64) {
        if before > 0 {
            let was_there = self.by_size.remove(&(before, host));
            debug_assert!(was_there, "RANKING-1");
        }
        if after > 0 {
            self.by_size.insert((after, host));
        }
    }

    /// The hosts with the number of their units, the largest first.
    pub(crate) fn largest(&self) -> impl Iterator<Item = (u64, H)> {
        self.by_size.iter().rev().copied()
    }

    /// Whether no host is larger than `host`, whose size is `size`.
    pub(crate) fn is_largest(&self, size: u64) -> bool {
        self.by_size.last().is_none_or(|(most, _)| size / self.unit >= *most)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_size.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_host_is_first_and_small_changes_do_not_count() {
        let mut ranking = Ranking::new(10);
        ranking.change('a', 0, 25);
        ranking.change('b', 0, 31);
        ranking.change('c', 0, 9);
        assert_eq!(ranking.largest().collect::<Vec<_>>(), [(3, 'b'), (2, 'a')], "RANKING-1");
        ranking.change('a', 25, 38);
        assert!(ranking.is_largest(38) && ranking.is_largest(31) && !ranking.is_largest(29));
        ranking.change('b', 31, 0);
        ranking.change('a', 38, 5);
        assert!(ranking.is_empty() && ranking.is_largest(5));
    }
}
