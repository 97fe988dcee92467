//! Queues of messages that wait for links.
//!
//! Among all messages waiting between the same two hosts only the first can be next: any message
//! that blocks it blocks the others, too. A link therefore tracks only the first message of each
//! pair, and the cost of a search is bounded by the number of hosts, whatever the length of the
//! queues.
//!
//! # Invariants
//!
//! - **WAITING-1**: `pairs` has every waiting message once, and no empty queue.
//! - **WAITING-2**: `firsts` of a link has exactly the first message of each queue in `pairs` that
//!   needs the link.

use std::collections::{BTreeMap, BTreeSet};

use super::rank::{Key, LinkIndex, Rank};

/// The two links that a message needs.
type Pair = [LinkIndex; 2];

/// Waiting messages in order of rank.
type Queue = BTreeSet<(Rank, Key)>;

/// All waiting messages.
#[derive(Debug)]
pub(super) struct WaitQueues {
    pairs: BTreeMap<Pair, Queue>,
    firsts: Box<[Queue]>,
}

impl WaitQueues {
    /// Returns empty queues for `links` links.
    pub(super) fn new(links: usize) -> Self {
        Self { pairs: BTreeMap::new(), firsts: vec![Queue::new(); links].into() }
    }

    /// Returns the messages that may be the next on a link, in order.
    pub(super) fn firsts(&self, link: LinkIndex) -> impl Iterator<Item = (Rank, Key)> + '_ {
        self.firsts[link].iter().copied()
    }

    /// Adds a waiting message.
    pub(super) fn insert(&mut self, pair: Pair, rank: Rank, key: Key) {
        let queue = self.pairs.entry(pair).or_default();
        let first = queue.first().copied();
        queue.insert((rank, key));
        if first.is_some_and(|first| first < (rank, key)) {
            return;
        }
        for link in pair {
            if let Some(first) = first {
                self.firsts[link].remove(&first);
            }
            self.firsts[link].insert((rank, key));
        }
    }

    /// Removes the first message of a pair, which must exist.
    pub(super) fn remove_first(&mut self, pair: Pair) {
        let queue = self.pairs.get_mut(&pair).expect("a message of the pair waits");
        let first = queue.pop_first().expect("WAITING-1");
        let next = queue.first().copied();
        for link in pair {
            self.firsts[link].remove(&first);
            self.firsts[link].extend(next);
        }
        if next.is_none() {
            self.pairs.remove(&pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_link_tracks_the_first_of_each_pair(
            steps in prop::collection::vec((0usize..3, 3usize..6, 0u64..9, any::<bool>()), 1..60),
        ) {
            let mut waiting = WaitQueues::new(6);
            let mut model: Vec<(Pair, Rank, Key)> = Vec::new();
            for (key, (from, to, remaining, comes)) in steps.into_iter().enumerate() {
                let rank = Rank { remaining, age: key as u64 };
                let pair = [from, to];
                let first = |model: &[(Pair, Rank, Key)], pair| {
                    let of_pair = model.iter().filter(|(each, ..)| *each == pair);
                    of_pair.map(|&(_, rank, key)| (rank, key)).min()
                };
                if comes {
                    waiting.insert(pair, rank, key);
                    model.push((pair, rank, key));
                } else if let Some((_, gone)) = first(&model, pair) {
                    waiting.remove_first(pair);
                    model.retain(|&(.., key)| key != gone);
                }
                for link in 0..6 {
                    let pairs = (0..6).map(|other| [link.min(other), link.max(other)]);
                    let mut firsts: Vec<_> =
                        pairs.filter_map(|pair| first(&model, pair)).collect();
                    firsts.sort_unstable();
                    prop_assert_eq!(waiting.firsts(link).collect::<Vec<_>>(), firsts, "WAITING-2");
                }
                prop_assert!(waiting.pairs.values().all(|queue| !queue.is_empty()), "WAITING-1");
                let queued: usize = waiting.pairs.values().map(Queue::len).sum();
                prop_assert_eq!(queued, model.len(), "WAITING-1");
            }
        }
    }
}
