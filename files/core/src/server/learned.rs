//! Nodes that clients have learned of in this life of the server, after the grace period.

use std::collections::HashMap;

use crate::store::ClientId;
use crate::wire::Ino;

/// Maximum number of tracked nodes. Chosen by us: a few megabytes. Beyond it, all nodes count as
/// learned.
pub(super) const MAX_LEARNED: usize = 1 << 16;

/// Nodes that clients have learned of in this life of the server, after the grace period.
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

    pub(super) fn insert(&mut self, ino: Ino, client: ClientId) {
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
    pub(super) fn by_another(&self, ino: Ino, client: ClientId) -> bool {
        self.is_full || self.nodes.get(&ino).is_some_and(|by| *by != Some(client))
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
