//! Table of peers.
//!
//! Records name a peer by its index in a table of the process, which is written to the file. The
//! table only grows, up to a bound; later peers share one index.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The index of a peer in the table.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PeerIndex(pub u16);

impl PeerIndex {
    /// No peer.
    pub const NONE: Self = Self(0);
    /// All peers that did not fit into the table.
    pub const OTHER: Self = Self(u16::MAX);
}

/// A path between an endpoint of this process and an endpoint of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// Address of this process's endpoint. The IP address is unspecified if it listens on all
    /// addresses of the host.
    pub endpoint: SocketAddr,
    /// Address of the peer.
    pub address: SocketAddr,
}

#[derive(Default)]
struct Table {
    all: Vec<Peer>,
    indices: HashMap<Peer, PeerIndex>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// Returns the index of a peer, which is added if it is missing. Takes a lock, so callers cache the
/// index.
pub(crate) fn index(peer: Peer) -> PeerIndex {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(index) = table.indices.get(&peer) {
        return *index;
    }
    // Index 0 means no peer.
    let index = u16::try_from(table.all.len() + 1).map_or(PeerIndex::OTHER, PeerIndex);
    if index != PeerIndex::OTHER {
        table.all.push(peer);
        table.indices.insert(peer, index);
    }
    index
}

/// Returns the peer with this index. Takes a lock.
pub(crate) fn at(index: PeerIndex) -> Option<Peer> {
    let place = usize::from(index.0).checked_sub(1)?;
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).all.get(place).copied()
}

/// Returns all peers; the first one has index 1.
pub(crate) fn all() -> Vec<Peer> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_keeps_its_index() {
        let peer = |port| Peer {
            endpoint: "127.0.0.1:1".parse().unwrap(),
            address: ([127, 0, 0, 9], port).into(),
        };
        let indices = [1, 2, 1].map(|port| index(peer(port)));
        assert_eq!(indices[0], indices[2]);
        assert_ne!(indices[0], indices[1]);
        assert_eq!(all()[usize::from(indices[1].0) - 1], peer(2));
        assert_eq!(at(indices[1]), Some(peer(2)));
        assert_eq!([PeerIndex::NONE, PeerIndex::OTHER].map(at), [None; 2]);
    }
}
