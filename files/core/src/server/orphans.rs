//! Orphans: nodes without a name that a client still has open.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::Ino;

/// An orphan.
#[derive(Debug, Default)]
struct Orphan {
    /// Sessions that have it open.
    holders: BTreeSet<u64>,
    /// Sessions that may have it open, and whose answer is missing.
    undecided: BTreeSet<u64>,
}

/// Placeholder among the undecided sessions for clients of an earlier life of the server, until the
/// grace period ends. No session has this number.
pub(super) const ABSENT: u64 = 0;

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

    /// Records the answer of a session. An answer that a Close has overtaken is ignored.
    pub(super) fn decide(&mut self, session: u64, ino: Ino, is_open: bool) {
        if let Some(orphan) = self.nodes.get_mut(&ino)
            && orphan.undecided.remove(&session)
            && is_open
        {
            orphan.holders.insert(session);
        }
    }

    /// Records that a session has closed a node; false if the node is no orphan.
    pub(super) fn close(&mut self, session: u64, ino: Ino) -> bool {
        let Some(orphan) = self.nodes.get_mut(&ino) else { return false };
        orphan.undecided.remove(&session);
        orphan.holders.remove(&session);
        true
    }

    /// Removes a session that has ended, and returns the nodes that it had open, or may have had
    /// open.
    pub(super) fn end(&mut self, session: u64) -> Vec<Ino> {
        let mut nodes = Vec::new();
        for (ino, orphan) in &mut self.nodes {
            if orphan.holders.remove(&session) | orphan.undecided.remove(&session) {
                nodes.push(*ino);
            }
        }
        nodes
    }

    /// Removes a node that no session has open.
    pub(super) fn take_unused(&mut self, ino: Ino) -> bool {
        let orphan = self.nodes.get(&ino);
        let is_unused =
            orphan.is_some_and(|node| node.holders.is_empty() && node.undecided.is_empty());
        is_unused && self.nodes.remove(&ino).is_some()
    }
}
