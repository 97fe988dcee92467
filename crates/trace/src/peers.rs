//! Who is at the other end?
//!
//! Records name a peer by its place in a table of the process, which goes into the file. The table only grows, up to a
//! bound; later peers share one place.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The place of a peer in the table.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PeerIndex(pub u16);

impl PeerIndex {
    /// No peer is concerned.
    pub const NONE: Self = Self(0);
    /// The table was full.
    pub const OTHER: Self = Self(u16::MAX);
}

/// A way between one endpoint of this process and one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// Our address. The IP address is unspecified if the endpoint listens on all of the host's.
    pub endpoint: SocketAddr,
    /// The peer's.
    pub address: SocketAddr,
}

#[derive(Default)]
struct Table {
    all: Vec<Peer>,
    places: HashMap<Peer, PeerIndex>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// The place of a peer; a new one if it has none. Takes a lock: callers keep what they get.
pub(crate) fn index(peer: Peer) -> PeerIndex {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = table.places.get(&peer) {
        return *place;
    }
    // Place 0 is nobody's.
    let place = u16::try_from(table.all.len() + 1).map_or(PeerIndex::OTHER, PeerIndex);
    if place != PeerIndex::OTHER {
        table.all.push(peer);
        table.places.insert(peer, place);
    }
    place
}

/// All of them, the first at place 1.
pub(crate) fn all() -> Vec<Peer> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_keeps_its_place() {
        let peer = |port| Peer {
            endpoint: "127.0.0.1:1".parse().unwrap(),
            address: ([127, 0, 0, 9], port).into(),
        };
        let places = [1, 2, 1].map(|port| index(peer(port)));
        assert_eq!(places[0], places[2]);
        assert_ne!(places[0], places[1]);
        assert_eq!(all()[usize::from(places[1].0) - 1], peer(2));
    }
}
