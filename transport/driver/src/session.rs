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
    /// The age of the peer, if it has stated it.
    pub age: Option<PeerAge>,
}

/// The age of a peer, as it has stated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAge {
    /// The age.
    pub age: Duration,
    /// Time since the statement, at most.
    pub stated_within: Duration,
}
