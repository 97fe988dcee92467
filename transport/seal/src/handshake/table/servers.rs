//! Handshakes that this endpoint answers, in progress and complete, bounded in number and time.

use super::super::cookie::Cookies;
use super::super::server::ServerHandshake;
use super::rates::UnknownPeerRate;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A handshake of a client: the client's address, and the id that the client drew.
pub(super) type Key = (SocketAddr, u64);

/// The READY of a complete handshake, repeated when its FINISH is.
#[derive(Debug)]
pub(super) struct CompleteHandshake {
    pub(super) ready: Vec<u8>,
    pub(super) from: Option<IpAddr>,
}

/// Handshakes that this endpoint answers.
#[derive(Debug)]
pub(super) struct Servers {
    pub(super) in_progress: BTreeMap<Key, ServerHandshake>,
    pub(super) complete: BTreeMap<Key, CompleteHandshake>,
    /// When entries of both maps are dropped, the first one first.
    ends: VecDeque<(Duration, Key)>,
    pub(super) cookies: Cookies,
    pub(super) unknown_peers: UnknownPeerRate,
}

impl Servers {
    pub(super) fn new(cookies: Cookies, unknown_peers: UnknownPeerRate) -> Self {
        Self {
            in_progress: BTreeMap::new(),
            complete: BTreeMap::new(),
            ends: VecDeque::new(),
            cookies,
            unknown_peers,
        }
    }

    /// Adds a handshake; drops the oldest ones if there are `limit` in progress.
    pub(super) fn insert(&mut self, key: Key, server: ServerHandshake, limit: usize) {
        while self.in_progress.len() >= limit
            && let Some((_, oldest)) = self.ends.pop_front()
        {
            self.complete.remove(&oldest);
            self.in_progress.remove(&oldest);
        }
        self.ends.push_back((server.ends, key));
        self.in_progress.insert(key, server);
    }

    /// Returns when the newest handshake in progress with `peer` started.
    pub(super) fn latest_start(&self, peer: SocketAddr) -> Option<Duration> {
        let of_peer = self.in_progress.range((peer, 0)..=(peer, u64::MAX));
        of_peer.map(|(_, server)| server.began).max()
    }

    /// Returns when the next handshake is dropped.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.ends.front().map(|(ends, _)| *ends)
    }

    /// Drops handshakes whose time is over. Returns the number of incomplete ones.
    pub(super) fn expire(&mut self, now: Duration) -> usize {
        let mut incomplete = 0;
        while let Some((ends, key)) = self.ends.front().copied()
            && ends <= now
        {
            self.ends.pop_front();
            self.complete.remove(&key);
            incomplete += usize::from(self.in_progress.remove(&key).is_some());
        }
        incomplete
    }
}
