//! Orphans: nodes without a name that some client still has open.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::{Ino, LeaseKind};

use super::Server;
use crate::store::Store;

/// An orphan.
#[derive(Debug, Default)]
struct Orphan {
    /// Sessions that have it open.
    holders: BTreeSet<u64>,
    /// Sessions that may have it open, and were asked.
    undecided: BTreeSet<u64>,
}

/// In place of the clients of an earlier life of the server among the undecided sessions, until the grace period
/// ends. No session has this number.
const ABSENT: u64 = 0;

/// All orphans.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    nodes: BTreeMap<Ino, Orphan>,
}

impl Orphans {
    /// Adds a node that has lost its last name, or never had one.
    pub(super) fn insert(&mut self, ino: Ino, holder: Option<u64>, undecided: BTreeSet<u64>) {
        let orphan = self.nodes.entry(ino).or_default();
        orphan.holders.extend(holder);
        orphan.undecided.extend(undecided);
    }

    /// Removes a node that got a name.
    pub(super) fn remove(&mut self, ino: Ino) {
        self.nodes.remove(&ino);
    }

    /// Notes the answer of a session that was asked. An answer that a Close has overtaken counts no more.
    pub(super) fn decide(&mut self, session: u64, ino: Ino, is_open: bool) {
        if let Some(orphan) = self.nodes.get_mut(&ino)
            && orphan.undecided.remove(&session)
            && is_open
        {
            orphan.holders.insert(session);
        }
    }

    /// Notes that a session has closed a node; false if the node is no orphan.
    pub(super) fn close(&mut self, session: u64, ino: Ino) -> bool {
        let Some(orphan) = self.nodes.get_mut(&ino) else { return false };
        orphan.undecided.remove(&session);
        orphan.holders.remove(&session);
        true
    }

    /// Notes that a session has ended, and returns the nodes that it had open, or may have had open.
    pub(super) fn end(&mut self, session: u64) -> Vec<Ino> {
        let mut nodes = Vec::new();
        for (ino, orphan) in &mut self.nodes {
            if orphan.holders.remove(&session) | orphan.undecided.remove(&session) {
                nodes.push(*ino);
            }
        }
        nodes
    }

    /// Takes out a node that no session has open.
    fn take_unused(&mut self, ino: Ino) -> bool {
        let orphan = self.nodes.get(&ino);
        let is_unused =
            orphan.is_some_and(|node| node.holders.is_empty() && node.undecided.is_empty());
        is_unused && self.nodes.remove(&ino).is_some()
    }
}

impl<S: Store> Server<S> {
    /// Keeps a node without a name until each session that has it open has closed it: asks all that may have.
    pub(super) fn keep_orphan(&mut self, ino: Ino, remover: Option<u64>, is_closed: bool) {
        let others = self.sessions.iter();
        let mut undecided: BTreeSet<u64> = others
            .filter(|(number, session)| Some(*number) != remover && session.has_heard_of(ino))
            .map(|(number, _)| number)
            .collect();
        for session in &undecided {
            self.recalls.request(*session, ino, LeaseKind::None, true, self.now);
        }
        if self.is_grace() {
            undecided.insert(ABSENT);
        }
        self.orphans.insert(ino, remover.filter(|_| !is_closed), undecided);
        self.drop_if_unused(ino);
    }

    /// Asks about all orphans, when all clients that have one open have returned.
    pub(super) fn ask_about_orphans(&mut self) {
        for ino in self.store.orphans() {
            self.keep_orphan(ino, None, true);
            self.orphans.decide(ABSENT, ino, false);
            self.drop_if_unused(ino);
        }
    }

    /// Removes an orphan if no session has it open any more.
    pub(super) fn drop_if_unused(&mut self, ino: Ino) {
        if self.orphans.take_unused(ino) {
            self.store.drop_orphan(ino);
            self.forget_node(ino);
        }
    }
}
