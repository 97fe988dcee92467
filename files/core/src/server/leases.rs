//! Leases: the sessions with a lease on each node, and its kind.
//!
//! A table without time and without waiting. [`Leases::set`] asserts FSSERVE-1.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::wire::{Ino, LeaseKind};

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Leases {
    // Never iterated, so its order does not matter. Holders of a node are in the order of their
    // sessions.
    nodes: HashMap<Ino, Vec<(u64, LeaseKind)>>,
    sessions: BTreeMap<u64, BTreeSet<Ino>>,
}

/// Whether two sessions cannot have leases of these kinds on one node.
pub(super) const fn is_conflict(one: LeaseKind, other: LeaseKind) -> bool {
    use LeaseKind::{Exclusive, None};
    match (one, other) {
        (None, _) | (_, None) => false,
        (Exclusive, _) | (_, Exclusive) => true,
        (LeaseKind::Shared, LeaseKind::Shared) => false,
    }
}

impl Leases {
    /// Returns a session's lease on a node.
    pub(super) fn held(&self, session: u64, ino: Ino) -> LeaseKind {
        let holder = self.holders(ino).iter().find(|(holder, _)| *holder == session);
        holder.map_or(LeaseKind::None, |(_, kind)| *kind)
    }

    /// Returns the sessions that hold a node, in the order of their numbers.
    pub(super) fn holders(&self, ino: Ino) -> &[(u64, LeaseKind)] {
        self.nodes.get(&ino).map_or(&[], Vec::as_slice)
    }

    /// Whether another session's lease prevents this one.
    pub(super) fn is_taken(&self, session: u64, ino: Ino, kind: LeaseKind) -> bool {
        let mut others = self.holders(ino).iter().filter(|(holder, _)| *holder != session);
        others.any(|(_, held)| is_conflict(*held, kind))
    }

    /// Sets a session's lease on a node.
    ///
    /// # Panics
    ///
    /// If another session's lease conflicts.
    pub(super) fn set(&mut self, session: u64, ino: Ino, kind: LeaseKind) {
        assert!(!self.is_taken(session, ino, kind), "FSSERVE-1: node {ino} is leased to another");
        if kind == LeaseKind::None {
            if let Some(nodes) = self.sessions.get_mut(&session) {
                nodes.remove(&ino);
            }
            if let Some(holders) = self.nodes.get_mut(&ino) {
                holders.retain(|(holder, _)| *holder != session);
                if holders.is_empty() {
                    self.nodes.remove(&ino);
                }
            }
            return;
        }
        self.sessions.entry(session).or_default().insert(ino);
        let holders = self.nodes.entry(ino).or_default();
        match holders.binary_search_by_key(&session, |(holder, _)| *holder) {
            Ok(at) => holders[at].1 = kind,
            Err(at) => holders.insert(at, (session, kind)),
        }
    }

    /// Forgets a node that does not exist any more.
    pub(super) fn forget(&mut self, ino: Ino) {
        for (session, _) in self.nodes.remove(&ino).unwrap_or_default() {
            if let Some(nodes) = self.sessions.get_mut(&session) {
                nodes.remove(&ino);
            }
        }
    }

    /// Removes all leases of a session and returns their nodes.
    pub(super) fn end(&mut self, session: u64) -> BTreeSet<Ino> {
        let nodes = self.sessions.get(&session).cloned().unwrap_or_default();
        for ino in &nodes {
            self.set(session, *ino, LeaseKind::None);
        }
        self.sessions.remove(&session);
        nodes
    }

    /// Returns the nodes on which a session has an exclusive lease.
    pub(super) fn exclusive(&self, session: u64) -> Vec<Ino> {
        let nodes = self.sessions.get(&session).into_iter().flatten().copied();
        nodes.filter(|ino| self.held(session, *ino) == LeaseKind::Exclusive).collect()
    }

    /// Returns the number of leases of a session.
    pub(super) fn count(&self, session: u64) -> usize {
        self.sessions.get(&session).map_or(0, BTreeSet::len)
    }

    /// Returns the numbers of shared and exclusive leases of a session.
    pub(super) fn counts(&self, session: u64) -> (u64, u64) {
        let nodes = self.sessions.get(&session).into_iter().flatten();
        nodes.fold((0, 0), |(shared, exclusive), ino| match self.held(session, *ino) {
            LeaseKind::Exclusive => (shared, exclusive + 1),
            LeaseKind::Shared | LeaseKind::None => (shared + 1, exclusive),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FSSERVE-1.
    #[test]
    fn an_exclusive_lease_excludes_all_others() {
        let mut leases = Leases::default();
        leases.set(1, Ino(5), LeaseKind::Shared);
        leases.set(2, Ino(5), LeaseKind::Shared);
        assert!(leases.is_taken(1, Ino(5), LeaseKind::Exclusive));
        assert_eq!(leases.end(2).into_iter().collect::<Vec<_>>(), [Ino(5)]);
        leases.set(1, Ino(5), LeaseKind::Exclusive);
        assert!(leases.is_taken(3, Ino(5), LeaseKind::Shared));
        assert_eq!(leases.counts(1), (0, 1));
        leases.forget(Ino(5));
        assert_eq!((leases.count(1), leases.holders(Ino(5))), (0, &[][..]));
    }

    #[test]
    #[should_panic(expected = "FSSERVE-1")]
    fn a_conflict_is_a_defect() {
        let mut leases = Leases::default();
        leases.set(1, Ino(5), LeaseKind::Exclusive);
        leases.set(2, Ino(5), LeaseKind::Shared);
    }
}
