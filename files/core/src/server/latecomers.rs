//! Latecomers: clients that held leases before the server was restarted, and claimed nothing in the grace period.
//!
//! The server does not remember what they held. It remembers what other clients have learned since the grace period ended: a client
//! that claims such a node to change it has changes which the others have not seen, though its applications were answered before.
//!
//! The next life of the server does not remember that either. So the store keeps the first number
//! of this life's ranges, from the moment at which something is learned: a client whose newest
//! range is older was away for a whole life, and is fenced.
//!
//! NFSv4 keeps a list of clients in stable storage instead (RFC 8881, section 8.4.3): a write per
//! session, and a list that grows. Leases in stable storage would be exact, at a write per lease;
//! voiding all late changes would cost every client its changes when a switch starts later than the
//! server. At most 65,536 nodes are remembered; beyond that all count.

use std::collections::HashMap;

use crate::wire::{Hello, Ino};

use super::Server;
use crate::store::{ClientId, Store};

/// Nodes that are remembered. Chosen by us: a few megabytes. With more of them, all nodes count as learned.
pub(super) const MAX_LEARNED: usize = 1 << 16;

/// Nodes of which clients have learned in this life of the server, after the grace period.
#[derive(Debug)]
pub(super) struct Learned {
    /// By whom; `None`: several clients.
    nodes: HashMap<Ino, Option<ClientId>>,
    /// How many are remembered.
    room: usize,
    is_full: bool,
}

impl Learned {
    pub(super) fn new(room: usize) -> Self {
        Self { nodes: HashMap::new(), room, is_full: false }
    }

    fn insert(&mut self, ino: Ino, client: ClientId) {
        if self.is_full {
            return;
        }
        let by = self.nodes.entry(ino).or_insert(Some(client));
        if *by != Some(client) {
            *by = None;
        }
        if self.nodes.len() > self.room {
            (self.is_full, self.nodes) = (true, HashMap::new());
        }
    }

    /// Returns whether a client other than this one has learned of a node.
    fn by_another(&self, ino: Ino, client: ClientId) -> bool {
        self.is_full || self.nodes.get(&ino).is_some_and(|by| *by != Some(client))
    }
}

impl<S: Store> Server<S> {
    /// Notes that a session begins, whose first range begins at `first`. Its client is a latecomer if all ranges that it had before are of
    /// lives before.
    pub(super) fn note_return(&mut self, session: u64, first: u64, hello: &Hello) {
        let life = *self.life_starts.get_or_insert(first);
        let client = ClientId(hello.client);
        let proven = hello
            .ranges
            .iter()
            .filter(|range| self.proofs.range(client, range.first, range.count) == **range);
        let newest = proven.map(|range| range.first).max();
        if newest.is_some_and(|newest| newest < self.returns_from) {
            self.fence(client);
        }
        if let Some(session) = self.sessions.get_mut(session) {
            session.is_late = newest.is_some_and(|newest| newest < life);
        }
    }

    /// Notes that a client learns of a node as it is in the store.
    pub(super) fn note_learned(&mut self, client: ClientId, ino: Ino) {
        if self.is_grace() {
            return;
        }
        self.learned.insert(ino, client);
        if let Some(first) = self.life_starts.filter(|first| *first > self.store.returns_from())
            && let Err(error) = self.store.set_returns_from(first)
        {
            self.is_broken = true;
            self.store_error = Some(error);
        }
    }

    /// Fences a latecomer that claims a node to change it, if another client has learned of the node.
    pub(super) fn check_late_claim(&mut self, session: u64, ino: Ino) {
        let Some(session) = self.sessions.get(session).filter(|session| session.is_late) else {
            return;
        };
        if self.learned.by_another(ino, session.client) {
            self.fence(session.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_client_itself_has_learned_does_not_count() {
        let mut learned = Learned::new(2);
        let (one, other) = (ClientId([1; 16]), ClientId([2; 16]));
        learned.insert(Ino(5), one);
        learned.insert(Ino(5), one);
        assert!(!learned.by_another(Ino(5), one) && learned.by_another(Ino(5), other));
        learned.insert(Ino(5), other);
        assert!(learned.by_another(Ino(5), one) && learned.by_another(Ino(5), other));
        assert!(!learned.by_another(Ino(6), one));
        learned.insert(Ino(6), one);
        learned.insert(Ino(7), one);
        assert!(learned.by_another(Ino(8), one), "all nodes count");
    }
}
