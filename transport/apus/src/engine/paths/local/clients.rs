//! Pairs that have carried requests, by number.

use apus_local::Pair;
use std::sync::Arc;

/// The pairs of the clients of this endpoint that have not ended.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Sorted by number, which increases from pair to pair.
    pairs: Vec<Arc<Pair>>,
    /// Index of the most recently used pair: most messages follow a message of the same client.
    last: usize,
}

impl Clients {
    /// Adds the pair of a request, unless it is there.
    #[inline]
    pub(super) fn note(&mut self, pair: &Arc<Pair>) {
        if self.get(pair.number()).is_none() {
            let at = self.pairs.partition_point(|other| other.number() < pair.number());
            self.pairs.insert(at, pair.clone());
            self.last = at;
        }
    }

    /// Returns the pair with this number; `None` if it has ended.
    #[inline]
    pub(super) fn get(&mut self, number: u64) -> Option<&Arc<Pair>> {
        if self.pairs.get(self.last).is_none_or(|last| last.number() != number) {
            self.last = self.pairs.binary_search_by_key(&number, |pair| pair.number()).ok()?;
        }
        self.pairs.get(self.last)
    }

    /// Removes a pair that has ended.
    pub(super) fn forget(&mut self, number: u64) {
        self.pairs.retain(|pair| pair.number() != number);
    }

    /// Removes all pairs.
    pub(super) fn clear(&mut self) {
        self.pairs.clear();
    }
}
