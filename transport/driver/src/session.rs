//! Sessions that a driver has agreed on with peers.

use std::net::SocketAddr;
use std::time::Duration;

/// A session of both directions with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The peer.
    pub peer: SocketAddr,
    /// The number of the session, 48 bits.
    pub number: u64,
    /// The life of the peer, if it has stated it.
    pub life: Option<PeerLife>,
}

/// The present life of a peer, as it has stated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerLife {
    /// Its age.
    pub age: Duration,
    /// Time since the statement, at most.
    pub stated_within: Duration,
    /// Whether the peer's earlier session belonged to another life.
    pub is_other: bool,
}
