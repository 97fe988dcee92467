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
    sessions: BTreeMap<u64, SessionLeases>,
}

/// Nodes on which a session has leases.
#[derive(Debug, Default)]
struct SessionLeases {
    nodes: BTreeSet<Ino>,
    /// Number of exclusive leases among them.
    exclusive: usize,
}

impl SessionLeases {
    fn remove(&mut self, ino: Ino, kind: LeaseKind) {
        if self.nodes.remove(&ino) {
            self.exclusive -= usize::from(kind == LeaseKind::Exclusive);
        }
    }
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
        super::work::step();
        let holders = self.holders(ino);
        let at = holders.binary_search_by_key(&session, |(holder, _)| *holder);
        at.map_or(LeaseKind::None, |at| holders[at].1)
    }

    /// Returns the sessions that hold a node, in the order of their numbers.
    pub(super) fn holders(&self, ino: Ino) -> &[(u64, LeaseKind)] {
        self.nodes.get(&ino).map_or(&[], Vec::as_slice)
    }

    /// Whether another session's lease prevents this one.
    pub(super) fn is_taken(&self, session: u64, ino: Ino, kind: LeaseKind) -> bool {
        super::work::step();
        match self.holders(ino) {
            [] => false,
            [(holder, held)] => *holder != session && is_conflict(*held, kind),
            // All have shared leases (FSSERVE-1).
            [(_, held), ..] => is_conflict(*held, kind),
        }
    }

    /// Sets a session's lease on a node.
    ///
    /// # Panics
    ///
    /// If another session's lease conflicts.
    pub(super) fn set(&mut self, session: u64, ino: Ino, kind: LeaseKind) {
        assert!(!self.is_taken(session, ino, kind), "FSSERVE-1: node {ino} is leased to another");
        let before = self.held(session, ino);
        if kind == LeaseKind::None {
            if let Some(own) = self.sessions.get_mut(&session) {
                own.remove(ino, before);
            }
            if let Some(holders) = self.nodes.get_mut(&ino) {
                holders.retain(|(holder, _)| *holder != session);
                if holders.is_empty() {
                    self.nodes.remove(&ino);
                }
            }
            return;
        }
        let own = self.sessions.entry(session).or_default();
        own.remove(ino, before);
        own.nodes.insert(ino);
        own.exclusive += usize::from(kind == LeaseKind::Exclusive);
        let holders = self.nodes.entry(ino).or_default();
        match holders.binary_search_by_key(&session, |(holder, _)| *holder) {
            Ok(at) => holders[at].1 = kind,
            Err(at) => holders.insert(at, (session, kind)),
        }
    }

    /// Forgets a node that does not exist any more.
    pub(super) fn forget(&mut self, ino: Ino) {
        for (session, kind) in self.nodes.remove(&ino).unwrap_or_default() {
            if let Some(own) = self.sessions.get_mut(&session) {
                own.remove(ino, kind);
            }
        }
    }

    /// Removes all leases of a session and returns their nodes.
    pub(super) fn end(&mut self, session: u64) -> BTreeSet<Ino> {
        let nodes = self.sessions.get(&session).map(|own| own.nodes.clone()).unwrap_or_default();
        for ino in &nodes {
            self.set(session, *ino, LeaseKind::None);
        }
        self.sessions.remove(&session);
        nodes
    }

    /// Returns the nodes on which a session has an exclusive lease.
    pub(super) fn exclusive(&self, session: u64) -> Vec<Ino> {
        let nodes = self.sessions.get(&session).into_iter().flat_map(|own| &own.nodes).copied();
        nodes.filter(|ino| self.held(session, *ino) == LeaseKind::Exclusive).collect()
    }

    /// Returns the number of leases of a session.
    pub(super) fn count(&self, session: u64) -> usize {
        self.sessions.get(&session).map_or(0, |own| own.nodes.len())
    }

    /// Returns the numbers of shared and exclusive leases of a session.
    pub(super) fn counts(&self, session: u64) -> (u64, u64) {
        self.sessions.get(&session).map_or((0, 0), |own| {
            let exclusive = own.exclusive as u64;
            (own.nodes.len() as u64 - exclusive, exclusive)
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

    /// Who holds a node, and how many leases a session has, takes no walk over either.
    #[test]
    fn questions_are_as_cheap_beside_many_leases() {
        let work = |sessions: u64, nodes: u64| {
            let mut leases = Leases::default();
            for session in 1..=sessions {
                leases.set(session, Ino(5), LeaseKind::Shared);
            }
            for node in 0..nodes {
                leases.set(1, Ino(100 + node), LeaseKind::Exclusive);
            }
            super::super::work::steps(|| {
                assert_eq!(leases.held(sessions, Ino(5)), LeaseKind::Shared);
                assert!(leases.is_taken(1, Ino(5), LeaseKind::Exclusive));
                assert!(!leases.is_taken(1, Ino(5), LeaseKind::Shared));
                assert_eq!(leases.counts(1), (1, nodes));
            })
        };
        assert_eq!(work(2, 1), work(1_000, 1_000));
    }

    #[test]
    #[should_panic(expected = "FSSERVE-1")]
    fn a_conflict_is_a_defect() {
        let mut leases = Leases::default();
        leases.set(1, Ino(5), LeaseKind::Exclusive);
        leases.set(2, Ino(5), LeaseKind::Shared);
    }
}
