//! Failed handshakes: counts them, keeps the latest one of each peer, and holds new ones back.

use super::super::refusals::{RefusalList, Refusals};
use crate::counters::SealCounters;
use crate::failure::{Failure, FoundBy, HandshakeError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time after a failure for which this end starts no new handshake with the peer.
const HOLD_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Failed handshakes, as client and as server.
#[derive(Debug)]
pub(super) struct Failures {
    counters: Arc<SealCounters>,
    /// The latest failure as client with each peer, and when the next handshake may start.
    held: BTreeMap<SocketAddr, (HandshakeError, Duration)>,
    /// Peers that `held` stores at most.
    capacity: usize,
    refusals: RefusalList,
}

impl Failures {
    pub(super) fn new(counters: Arc<SealCounters>, capacity: usize) -> Self {
        Self { counters, held: BTreeMap::new(), capacity, refusals: RefusalList::default() }
    }

    /// Records that the client's handshake with `peer` failed. Returns the error.
    pub(super) fn fail_client(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        cause: Failure,
        found_by: FoundBy,
    ) -> HandshakeError {
        self.counters.count_failure(cause);
        let error = HandshakeError { cause, found_by };
        if self.held.len() < self.capacity {
            self.held.insert(peer, (error, now + HOLD_AFTER_FAILURE));
        }
        error
    }

    /// Records that the server's handshake with `peer` failed. The peer is not held back: its
    /// address may be forged.
    pub(super) fn fail_server(&mut self, peer: SocketAddr, cause: Failure, found_by: FoundBy) {
        self.counters.count_failure(cause);
        self.refusals.add(HandshakeError { cause, found_by }, peer);
    }

    /// Returns the failure because of which no handshake with `peer` may start at `now`.
    pub(super) fn hold(&self, now: Duration, peer: SocketAddr) -> Option<HandshakeError> {
        let (error, until) = self.held.get(&peer)?;
        (*until > now).then_some(*error)
    }

    /// Returns the latest failure with `peer`, if it is still stored.
    pub(super) fn latest(&self, peer: SocketAddr) -> Option<HandshakeError> {
        self.held.get(&peer).map(|(error, _)| *error)
    }

    /// Forgets the failure with `peer`: a handshake succeeded.
    pub(super) fn clear(&mut self, peer: SocketAddr) {
        self.held.remove(&peer);
    }

    /// Forgets failures older than two seconds.
    pub(super) fn expire(&mut self, now: Duration) {
        self.held.retain(|_, (_, until)| *until + HOLD_AFTER_FAILURE > now);
    }

    pub(super) fn take_refusals(&mut self) -> Vec<Refusals> {
        self.refusals.take()
    }
}
