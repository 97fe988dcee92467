//! The messages that wait for grants, and which of them are active.
//!
//! A message's *rank in its peer* is its position in SRPT order among the waiting messages of the
//! same peer. The active messages are the first by (rank in the peer, bytes missing, age): no peer
//! has a second active message while another waiting peer has none (HM `homa_grant.c`
//! `homa_grant_find_victim`), and otherwise the shortest remaining are first, ties broken by age
//! (HM `homa_grant.c` `homa_grant_outranks`). Requirements GRANT-2, GRANT-3.
//!
//! # Invariants
//!
//! - **CANDIDATES-1** `heads` holds exactly the first message of each peer that has one.
//! - **CANDIDATES-2** `by_birth` holds the same messages as `by_peer`.

use crate::peer::PeerId;
use crate::rpc::RpcKey;
use slotmap::SecondaryMap;
use slotmap::secondary::Entry;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// SRPT order: fewest missing bytes first, then the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Bytes that have not arrived.
    pub(crate) missing: u32,
    /// Order of creation.
    pub(crate) birth: u64,
    pub(crate) rpc: RpcKey,
}

/// The messages that wait for grants.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    by_peer: SecondaryMap<PeerId, Row>,
    heads: BTreeSet<(Key, PeerId)>,
    by_birth: BTreeSet<(u64, RpcKey)>,
}

/// The messages of one peer. Usually there is one, whose key changes with every packet: replacing
/// it is free.
#[derive(Debug)]
enum Row {
    One(Key),
    /// Any number of them.
    Several(BTreeSet<Key>),
}

impl Row {
    fn first(&self) -> Option<Key> {
        match self {
            Self::One(key) => Some(*key),
            Self::Several(keys) => keys.first().copied(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Key> {
        let (one, several) = match self {
            Self::One(key) => (Some(key), None),
            Self::Several(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    fn insert(&mut self, key: Key) -> bool {
        match self {
            Self::One(one) => {
                let before = *one;
                *self = Self::Several(BTreeSet::from([before, key]));
                before != key
            }
            Self::Several(keys) => keys.insert(key),
        }
    }

    fn replace(&mut self, old: Key, new: Key) -> bool {
        match self {
            Self::One(one) => std::mem::replace(one, new) == old,
            Self::Several(keys) => keys.remove(&old) && keys.insert(new),
        }
    }
}

impl Candidates {
    pub(super) fn insert(&mut self, peer: PeerId, key: Key) {
        let Some(entry) = self.by_peer.entry(peer) else {
            debug_assert!(false, "PEERS-1: a peer with live RPCs is known");
            return;
        };
        let (before, inserted) = match entry {
            Entry::Occupied(row) => (row.get().first(), row.into_mut().insert(key)),
            Entry::Vacant(place) => {
                place.insert(Row::One(key));
                (None, true)
            }
        };
        debug_assert!(inserted, "CANDIDATES-2: inserted twice");
        self.by_birth.insert((key.birth, key.rpc));
        self.move_head(peer, before);
    }

    pub(super) fn remove(&mut self, peer: PeerId, key: Key) {
        let Some(row) = self.by_peer.get_mut(peer) else {
            debug_assert!(false, "CANDIDATES-2: removed a message that is not listed");
            return;
        };
        let before = row.first();
        let (removed, is_empty) = match row {
            Row::One(one) => (*one == key, true),
            Row::Several(keys) => (keys.remove(&key), keys.is_empty()),
        };
        debug_assert!(removed, "CANDIDATES-2: removed a message that is not listed");
        if is_empty {
            self.by_peer.remove(peer);
        }
        self.by_birth.remove(&(key.birth, key.rpc));
        self.move_head(peer, before);
    }

    /// Gives a message another key, after some of its bytes have arrived.
    pub(super) fn replace(&mut self, peer: PeerId, old: Key, new: Key) {
        debug_assert_eq!((old.birth, old.rpc), (new.birth, new.rpc), "the same message");
        let Some(row) = self.by_peer.get_mut(peer) else {
            debug_assert!(false, "CANDIDATES-2: replaced a message that is not listed");
            return;
        };
        let before = row.first();
        let replaced = row.replace(old, new);
        debug_assert!(replaced, "CANDIDATES-2: replaced a message that is not listed");
        self.move_head(peer, before);
    }

    /// The active messages, at most `limit`, in SRPT order.
    pub(super) fn select(&self, limit: usize) -> SmallVec<[Key; 8]> {
        let mut active: SmallVec<[Key; 8]> =
            self.heads.iter().take(limit).map(|(key, _)| *key).collect();
        if active.len() < limit && self.heads.len() < self.by_birth.len() {
            self.select_higher_ranks(limit, &mut active);
        }
        active.sort_unstable();
        active
    }

    /// The oldest message.
    pub(super) fn oldest(&self) -> Option<RpcKey> {
        self.by_birth.first().map(|(_, rpc)| *rpc)
    }

    /// Number of messages.
    pub(super) fn len(&self) -> usize {
        self.by_birth.len()
    }

    /// All peers have their first message in `active` already; adds second messages, third
    /// messages, and further ones until `limit` is reached. There are fewer than `limit` peers,
    /// hence the work is bounded.
    fn select_higher_ranks(&self, limit: usize, active: &mut SmallVec<[Key; 8]>) {
        let mut rows: SmallVec<[_; 8]> =
            self.heads.iter().map(|(_, peer)| self.by_peer[*peer].iter().skip(1)).collect();
        while active.len() < limit {
            let mut rank: SmallVec<[Key; 8]> =
                rows.iter_mut().filter_map(|row| row.next().copied()).collect();
            if rank.is_empty() {
                return;
            }
            rank.sort_unstable();
            rank.truncate(limit - active.len());
            active.extend(rank);
        }
    }

    /// Puts the first message of `peer` in the place of `before` among the heads (CANDIDATES-1).
    fn move_head(&mut self, peer: PeerId, before: Option<Key>) {
        let after = self.by_peer.get(peer).and_then(Row::first);
        if before != after {
            if let Some(key) = before {
                self.heads.remove(&(key, peer));
            }
            if let Some(key) = after {
                self.heads.insert((key, peer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slotmap::SlotMap;

    struct World {
        peers: Vec<PeerId>,
        rpcs: Vec<RpcKey>,
    }

    fn world() -> World {
        let mut peers = SlotMap::with_key();
        let mut rpcs = SlotMap::with_key();
        World {
            peers: (0..5).map(|_| peers.insert(())).collect(),
            rpcs: (0..20).map(|_| rpcs.insert(())).collect(),
        }
    }

    /// The definition at the head of the file, word by word.
    fn model(messages: &[(PeerId, Key)], limit: usize) -> Vec<Key> {
        let mut ranked: Vec<(usize, Key)> = messages
            .iter()
            .map(|(peer, key)| {
                let shorter = messages.iter().filter(|(p, k)| p == peer && k < key).count();
                (shorter, *key)
            })
            .collect();
        ranked.sort_unstable();
        let mut active: Vec<Key> = ranked.into_iter().take(limit).map(|(_, key)| key).collect();
        active.sort_unstable();
        active
    }

    /// Source: HM `homa_grant.c` `homa_grant_find_victim`.
    #[test]
    fn no_peer_has_two_slots_while_another_waits_with_none() {
        let world = world();
        let mut candidates = Candidates::default();
        let key = |i: usize, missing| Key { missing, birth: i as u64, rpc: world.rpcs[i] };
        for i in 0..6 {
            candidates.insert(world.peers[0], key(i, 10 + i as u32));
        }
        assert_eq!(candidates.select(4).len(), 4, "alone, a peer may have all slots");
        candidates.insert(world.peers[1], key(6, 1_000_000));
        candidates.insert(world.peers[2], key(7, 2_000_000));
        let active = candidates.select(3);
        assert_eq!(
            active.iter().map(|k| k.missing).collect::<Vec<_>>(),
            [10, 1_000_000, 2_000_000]
        );
        assert_eq!(candidates.oldest(), Some(world.rpcs[0]));
    }

    proptest! {
        #[test]
        fn the_active_messages_are_those_of_the_definition(
            steps in proptest::collection::vec((0usize..20, 0usize..5, 1u32..30, any::<bool>()), 0..60),
            limit in 1usize..10,
        ) {
            let world = world();
            let mut candidates = Candidates::default();
            let mut messages: Vec<(PeerId, Key)> = Vec::new();
            for (which, peer, missing, progress) in steps {
                let rpc = world.rpcs[which];
                if let Some(at) = messages.iter().position(|(_, key)| key.rpc == rpc) {
                    let (peer, key) = messages.swap_remove(at);
                    if progress {
                        let new = Key { missing, ..key };
                        candidates.replace(peer, key, new);
                        messages.push((peer, new));
                    } else {
                        candidates.remove(peer, key);
                    }
                } else {
                    let key = Key { missing, birth: which as u64, rpc };
                    messages.push((world.peers[peer], key));
                    candidates.insert(world.peers[peer], key);
                }
                prop_assert_eq!(candidates.select(limit).to_vec(), model(&messages, limit));
                let oldest = messages.iter().map(|(_, key)| (key.birth, key.rpc)).min();
                prop_assert_eq!(candidates.oldest(), oldest.map(|(_, rpc)| rpc));
                prop_assert_eq!(candidates.len(), messages.len());
            }
            for (peer, key) in messages {
                candidates.remove(peer, key);
            }
            prop_assert!(candidates.heads.is_empty() && candidates.by_peer.is_empty());
        }
    }
}
