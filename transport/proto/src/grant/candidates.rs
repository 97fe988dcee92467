//! The messages that wait for grants, and which of them are active.
//!
//! A message's *rank in its peer* is its position in SRPT order among the waiting messages of the
//! same peer. Its *rank in its host* is its position among the waiting messages of the same host,
//! ordered by (rank in the peer, bytes missing, age). The active messages are the first by (rank in
//! the host, bytes missing, age): no host has a second active message while another waiting host
//! has none, and no peer of a host while another one of its peers has none. Otherwise the shortest
//! remaining are first, ties broken by age (HM `homa_grant.c` `homa_grant_outranks`). Requirements
//! GRANT-2, GRANT-3.
//!
//! The kernel spreads over peers, which are hosts there (HM `homa_grant.c`
//! `homa_grant_find_victim`). Here a host has as many peers as it has ports.
//!
//! # Invariants
//!
//! - **CANDIDATES-1** `by_host` holds exactly the first message of each peer that has one, and
//!   `heads` the first of each host.
//! - **CANDIDATES-2** `by_birth` holds the same messages as `by_peer`.

use crate::peer::{HostId, PeerId};
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
    by_peer: SecondaryMap<PeerId, Row<Key>>,
    by_host: SecondaryMap<HostId, Row<(Key, PeerId)>>,
    heads: BTreeSet<(Key, HostId)>,
    by_birth: BTreeSet<(u64, RpcKey)>,
}

/// The messages of one peer, or the first messages of the peers of one host. Usually there is one,
/// whose key changes with every packet: replacing it is free.
#[derive(Debug)]
enum Row<T> {
    One(T),
    /// Any number of them.
    Several(BTreeSet<T>),
}

impl<T: Copy + Ord> Row<T> {
    fn first(&self) -> Option<T> {
        match self {
            Self::One(key) => Some(*key),
            Self::Several(keys) => keys.first().copied(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = T> {
        let (one, several) = match self {
            Self::One(key) => (Some(key), None),
            Self::Several(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(several.into_iter().flatten()).copied()
    }

    fn insert(&mut self, key: T) -> bool {
        match self {
            Self::One(one) => {
                let before = *one;
                *self = Self::Several(BTreeSet::from([before, key]));
                before != key
            }
            Self::Several(keys) => keys.insert(key),
        }
    }

    fn replace(&mut self, old: T, new: T) -> bool {
        match self {
            Self::One(one) => std::mem::replace(one, new) == old,
            Self::Several(keys) => keys.remove(&old) && keys.insert(new),
        }
    }

    /// Removes a key. Returns whether it was there, and whether the row is empty now.
    fn remove(&mut self, key: T) -> (bool, bool) {
        match self {
            Self::One(one) => (*one == key, true),
            Self::Several(keys) => (keys.remove(&key), keys.is_empty()),
        }
    }
}

impl Candidates {
    /// A message of `peer`, a peer of `host`, has the key `new` in place of `old`; `None` if it is
    /// not listed.
    pub(super) fn change(
        &mut self,
        host: HostId,
        peer: PeerId,
        old: Option<Key>,
        new: Option<Key>,
    ) {
        match (old, new) {
            (None, Some(new)) => _ = self.by_birth.insert((new.birth, new.rpc)),
            (Some(old), None) => _ = self.by_birth.remove(&(old.birth, old.rpc)),
            (Some(old), Some(new)) => {
                debug_assert_eq!((old.birth, old.rpc), (new.birth, new.rpc), "the same message");
            }
            (None, None) => return,
        }
        // CANDIDATES-1
        let (before, after) = change_row(&mut self.by_peer, peer, old, new);
        if before == after {
            return;
        }
        let of_peer = |key: Key| (key, peer);
        let (before, after) =
            change_row(&mut self.by_host, host, before.map(of_peer), after.map(of_peer));
        if before == after {
            return;
        }
        if let Some((key, _)) = before {
            self.heads.remove(&(key, host));
        }
        if let Some((key, _)) = after {
            self.heads.insert((key, host));
        }
    }

    /// The active messages, at most `limit`, in SRPT order.
    pub(super) fn select(&self, limit: usize) -> SmallVec<[Key; 8]> {
        let mut active: SmallVec<[Key; 8]> =
            self.heads.iter().take(limit).map(|(key, _)| *key).collect();
        if active.len() < limit && self.heads.len() < self.by_birth.len() {
            // All hosts have their first message here already.
            let hosts = self.heads.iter().map(|(_, host)| self.of_host(*host, limit).into_iter());
            select_higher_ranks(hosts.map(|of_host| of_host.skip(1)).collect(), limit, &mut active);
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

    /// The first messages of `host`, at most `limit`, by their rank in it.
    fn of_host(&self, host: HostId, limit: usize) -> SmallVec<[Key; 8]> {
        let peers = &self.by_host[host];
        let mut first: SmallVec<[Key; 8]> = peers.iter().take(limit).map(|(key, _)| key).collect();
        if first.len() < limit {
            // All peers have their first message here already.
            let rows = peers.iter().map(|(_, peer)| self.by_peer[peer].iter().skip(1));
            select_higher_ranks(rows.collect(), limit, &mut first);
        }
        first
    }
}

/// Replaces `old` by `new` in the row of `name`. Returns the first key of the row before and after.
fn change_row<K: slotmap::Key, T: Copy + Ord>(
    rows: &mut SecondaryMap<K, Row<T>>,
    name: K,
    old: Option<T>,
    new: Option<T>,
) -> (Option<T>, Option<T>) {
    let Some(entry) = rows.entry(name) else {
        debug_assert!(false, "PEERS-1: a peer with live RPCs is known");
        return (None, None);
    };
    let mut place = match entry {
        Entry::Occupied(place) => place,
        Entry::Vacant(place) => {
            debug_assert!(old.is_none(), "CANDIDATES-2: a message that is not listed");
            if let Some(new) = new {
                place.insert(Row::One(new));
            }
            return (None, new);
        }
    };
    let row = place.get_mut();
    let before = row.first();
    let (is_listed, is_empty) = match (old, new) {
        (Some(old), Some(new)) => (row.replace(old, new), false),
        (None, Some(new)) => (row.insert(new), false),
        (Some(old), None) => row.remove(old),
        (None, None) => (true, false),
    };
    debug_assert!(is_listed, "CANDIDATES-2: a message that is not listed, or listed twice");
    if is_empty {
        place.remove();
        return (before, None);
    }
    (before, row.first())
}

/// Adds to `chosen` the next message of each row, in SRPT order, then their next ones, until there
/// are `limit`. There are fewer rows than that, hence the work is bounded.
fn select_higher_ranks(
    mut rows: SmallVec<[impl Iterator<Item = Key>; 8]>,
    limit: usize,
    chosen: &mut SmallVec<[Key; 8]>,
) {
    while chosen.len() < limit {
        let mut rank: SmallVec<[Key; 8]> = rows.iter_mut().filter_map(Iterator::next).collect();
        if rank.is_empty() {
            return;
        }
        rank.sort_unstable();
        rank.truncate(limit - chosen.len());
        chosen.extend(rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slotmap::SlotMap;

    struct World {
        hosts: Vec<HostId>,
        peers: Vec<PeerId>,
        rpcs: Vec<RpcKey>,
    }

    /// Six peers; two of each host.
    fn world() -> World {
        let mut hosts = SlotMap::with_key();
        let mut peers = SlotMap::with_key();
        let mut rpcs = SlotMap::with_key();
        let hosts: Vec<HostId> = (0..3).map(|_| hosts.insert(())).collect();
        World {
            hosts: (0..6).map(|peer| hosts[peer / 2]).collect(),
            peers: (0..6).map(|_| peers.insert(())).collect(),
            rpcs: (0..20).map(|_| rpcs.insert(())).collect(),
        }
    }

    /// The definition at the head of the file, word by word. A message has a host, a peer, and its
    /// key.
    fn model(messages: &[(HostId, PeerId, Key)], limit: usize) -> Vec<Key> {
        let mut in_peer: Vec<(HostId, usize, Key)> = Vec::new();
        for (host, peer, key) in messages {
            let shorter = messages.iter().filter(|(_, p, k)| p == peer && k < key).count();
            in_peer.push((*host, shorter, *key));
        }
        let mut ranked: Vec<(usize, Key)> = Vec::new();
        for (host, rank, key) in &in_peer {
            let before =
                in_peer.iter().filter(|(h, r, k)| h == host && (r, k) < (rank, key)).count();
            ranked.push((before, *key));
        }
        ranked.sort_unstable();
        let mut active: Vec<Key> = ranked.into_iter().take(limit).map(|(_, key)| key).collect();
        active.sort_unstable();
        active
    }

    /// Requirement GRANT-3. Source: HM `homa_grant.c` `homa_grant_find_victim`.
    #[test]
    fn no_host_has_two_slots_while_another_waits_with_none() {
        let World { hosts, peers, rpcs } = world();
        let mut candidates = Candidates::default();
        let mut put = |peer: usize, i: usize, missing| {
            let key = Key { missing, birth: i as u64, rpc: rpcs[i] };
            candidates.change(hosts[peer], peers[peer], None, Some(key));
            let active = candidates.select(4);
            active.iter().map(|key| key.missing).collect::<Vec<_>>()
        };
        for i in 0..6 {
            put(0, i, 10 + i as u32);
        }
        assert_eq!(put(0, 6, 16), [10, 11, 12, 13], "alone, a peer may have all slots");
        assert_eq!(put(1, 7, 1_000), [10, 11, 12, 1_000], "another peer of the host has one");
        assert_eq!(put(2, 8, 2_000), [10, 11, 1_000, 2_000]);
        assert_eq!(put(3, 9, 3_000), [10, 1_000, 2_000, 3_000], "two of each host");
        assert_eq!(put(4, 10, 4_000), [10, 1_000, 2_000, 4_000], "one of each, and the shortest");
        assert_eq!(candidates.oldest(), Some(rpcs[0]));
    }

    proptest! {
        #[test]
        fn the_active_messages_are_those_of_the_definition(
            steps in proptest::collection::vec((0usize..20, 0usize..6, 1u32..30, any::<bool>()), 0..60),
            limit in 1usize..10,
        ) {
            let world = world();
            let mut candidates = Candidates::default();
            let mut messages: Vec<(HostId, PeerId, Key)> = Vec::new();
            for (which, peer, missing, progress) in steps {
                let rpc = world.rpcs[which];
                if let Some(at) = messages.iter().position(|(_, _, key)| key.rpc == rpc) {
                    let (host, peer, key) = messages.swap_remove(at);
                    let new = progress.then_some(Key { missing, ..key });
                    candidates.change(host, peer, Some(key), new);
                    messages.extend(new.map(|new| (host, peer, new)));
                } else {
                    let key = Key { missing, birth: which as u64, rpc };
                    let (host, peer) = (world.hosts[peer], world.peers[peer]);
                    messages.push((host, peer, key));
                    candidates.change(host, peer, None, Some(key));
                }
                prop_assert_eq!(candidates.select(limit).to_vec(), model(&messages, limit));
                let oldest = messages.iter().map(|(_, _, key)| (key.birth, key.rpc)).min();
                prop_assert_eq!(candidates.oldest(), oldest.map(|(_, rpc)| rpc));
                prop_assert_eq!(candidates.len(), messages.len());
            }
            for (host, peer, key) in messages {
                candidates.change(host, peer, Some(key), None);
            }
            prop_assert!(candidates.heads.is_empty() && candidates.by_host.is_empty());
            prop_assert!(candidates.by_peer.is_empty() && candidates.by_birth.is_empty());
        }
    }
}
