//! Parked messages, which found no room in the receive budget: they are inactive until room is
//! freed.
//!
//! Otherwise a few messages of a host at its limit would occupy all active slots, and other hosts
//! would receive no grants.
//!
//! # Invariants
//!
//! - **PARKED-1** A message is here exactly if `parked` of its
//!   [`GrantEntry`](crate::rpc::GrantEntry) is set.
//! - **PARKED-2** When room is freed, each parked message is retried once, a few in each run, in
//!   order of age, starting after the last one retried.

use crate::rpc::RpcKey;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Messages that are tried in one run.
const TRIES: usize = 16;

/// The messages that wait for room.
#[derive(Debug, Default)]
pub(super) struct Parked {
    by_birth: BTreeSet<(u64, RpcKey)>,
    /// The message that was tried last.
    last: (u64, RpcKey),
    /// Number of messages that are still to be tried.
    left: usize,
}

impl Parked {
    pub(super) fn insert(&mut self, birth: u64, rpc: RpcKey) {
        self.by_birth.insert((birth, rpc));
    }

    pub(super) fn remove(&mut self, birth: u64, rpc: RpcKey) {
        self.by_birth.remove(&(birth, rpc));
    }

    /// Room was freed: retry all.
    pub(super) fn retry_all(&mut self) {
        self.left = self.by_birth.len();
    }

    /// Whether messages are still to be tried.
    pub(super) const fn has_more(&self) -> bool {
        self.left > 0
    }

    /// Takes those out that are tried now.
    pub(super) fn take_some(&mut self) -> impl Iterator<Item = RpcKey> {
        let tries = self.left.min(TRIES);
        self.left -= tries;
        (0..tries).map_while(|_| self.take_next())
    }

    /// Takes out the message that is due next.
    pub(super) fn take_next(&mut self) -> Option<RpcKey> {
        let next = self.next()?;
        self.by_birth.remove(&next);
        self.last = next;
        Some(next.1)
    }

    pub(super) fn len(&self) -> usize {
        self.by_birth.len()
    }

    /// The oldest message younger than the last one retried, or else the oldest of all.
    fn next(&self) -> Option<(u64, RpcKey)> {
        let mut younger = self.by_birth.range((Bound::Excluded(self.last), Bound::Unbounded));
        younger.next().or_else(|| self.by_birth.first()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotmap::SlotMap;

    #[test]
    fn each_is_tried_once_and_the_next_time_the_others_are_first() {
        let mut slots: SlotMap<RpcKey, u64> = SlotMap::with_key();
        let mut parked = Parked::default();
        for birth in 1..=20 {
            parked.insert(birth, slots.insert(birth));
        }
        assert!(!parked.has_more(), "nothing has changed");
        parked.retry_all();
        let mut tried = Vec::new();
        while parked.has_more() {
            let some: Vec<RpcKey> = parked.take_some().collect();
            assert!(some.len() <= TRIES, "PARKED-2");
            for rpc in some {
                parked.insert(slots[rpc], rpc);
                tried.push(slots[rpc]);
            }
        }
        assert_eq!(tried, (1..=20).collect::<Vec<_>>());
        assert_eq!(parked.take_next().map(|rpc| slots[rpc]), Some(1), "it goes round");
        let second = slots.iter().find(|(_, birth)| **birth == 2).unwrap().0;
        parked.remove(2, second);
        assert_eq!((parked.take_next().map(|rpc| slots[rpc]), parked.len()), (Some(3), 17));
    }
}
