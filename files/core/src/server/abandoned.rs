//! Nodes that a client may have changed before its session ended. It may return with the changes,
//! unless another client has learned of a node without them.

use std::collections::HashMap;

use crate::wire::Ino;

use crate::store::ClientId;

/// Maximum number of nodes that are tracked. Chosen by us: the leases of eight clients. Further
/// clients are fenced at once.
const MAX_ABANDONED: usize = 8 * super::settings::MAX_LEASES;

/// Nodes on which ended sessions had exclusive leases.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    nodes: HashMap<Ino, ClientId>,
    clients: HashMap<ClientId, Vec<Ino>>,
}

impl Abandoned {
    /// Remembers the nodes of a client whose session has ended; false if there is no room.
    pub(super) fn insert(&mut self, client: ClientId, nodes: Vec<Ino>) -> bool {
        if nodes.is_empty() {
            return true;
        }
        if self.nodes.len() + nodes.len() > MAX_ABANDONED {
            return false;
        }
        self.nodes.extend(nodes.iter().map(|ino| (*ino, client)));
        self.clients.entry(client).or_default().extend(nodes);
        true
    }

    /// Returns the client that may have kept changes of a node.
    pub(super) fn owner(&self, ino: Ino) -> Option<ClientId> {
        self.nodes.get(&ino).copied()
    }

    /// Forgets a client that has returned, or will not.
    pub(super) fn forget(&mut self, client: ClientId) {
        for ino in self.clients.remove(&client).unwrap_or_default() {
            if self.owner(ino) == Some(client) {
                self.nodes.remove(&ino);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_belongs_to_its_last_holder() {
        let mut abandoned = Abandoned::default();
        let (one, other) = (ClientId([1; 16]), ClientId([2; 16]));
        assert!(abandoned.insert(one, vec![Ino(5), Ino(6)]));
        assert!(abandoned.insert(other, vec![Ino(6)]));
        abandoned.forget(one);
        assert_eq!((abandoned.owner(Ino(5)), abandoned.owner(Ino(6))), (None, Some(other)));
        assert!(!abandoned.insert(one, (0..=MAX_ABANDONED as u64).map(Ino).collect()));
        assert_eq!(abandoned.owner(Ino(7)), None);
    }
}
