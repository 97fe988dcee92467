//! Handshakes that this endpoint answers, in progress and complete, bounded in number and time.

use super::super::cookie::Cookies;
use super::super::server::ServerHandshake;
use super::rates::HandshakeRates;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    /// Handshakes that failed. Their places stay taken until their time is over: otherwise FAILED,
    /// which anyone can send, would make room for the next one.
    failed: BTreeSet<Key>,
    /// When the entries are dropped, the first one first.
    ends: VecDeque<(Duration, Key)>,
    pub(super) cookies: Cookies,
    pub(super) rates: HandshakeRates,
}

impl Servers {
    pub(super) const fn new(cookies: Cookies, rates: HandshakeRates) -> Self {
        Self {
            in_progress: BTreeMap::new(),
            complete: BTreeMap::new(),
            failed: BTreeSet::new(),
            ends: VecDeque::new(),
            cookies,
            rates,
        }
    }

    /// Returns the number of handshakes in progress, together with those that failed within their
    /// time.
    pub(super) fn places(&self) -> usize {
        self.in_progress.len() + self.failed.len()
    }

    /// Returns whether this handshake is over, and its time is not.
    pub(super) fn is_over(&self, key: &Key) -> bool {
        self.complete.contains_key(key) || self.failed.contains(key)
    }

    /// Ends a handshake that failed. Returns it if it was in progress.
    pub(super) fn fail(&mut self, key: Key) -> Option<ServerHandshake> {
        let server = self.in_progress.remove(&key)?;
        self.failed.insert(key);
        Some(server)
    }

    /// Adds a handshake; drops the oldest ones if `limit` places are taken.
    pub(super) fn insert(&mut self, key: Key, server: ServerHandshake, limit: usize) {
        while self.places() >= limit
            && let Some((_, oldest)) = self.ends.pop_front()
        {
            self.complete.remove(&oldest);
            self.failed.remove(&oldest);
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
            self.failed.remove(&key);
            incomplete += usize::from(self.in_progress.remove(&key).is_some());
        }
        incomplete
    }
}
