//! What a server counts.

use crate::wire::RequestKind;

use super::Server;
use crate::store::{Store, StoreMetrics};
use crate::tally::Tally;

/// What the server has done since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: Tally<{ RequestKind::ALL.len() }>,
    pub(super) recalls: u64,
    pub(super) batches: u64,
}

/// Counters and gauges of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerMetrics {
    /// Requests that were understood, by kind.
    pub requests: Vec<(RequestKind, u64)>,
    /// Callbacks that recalled leases.
    pub recalls: u64,
    /// Batches that were applied.
    pub batches: u64,
    /// Sessions.
    pub sessions: u64,
    /// Shared leases.
    pub shared: u64,
    /// Exclusive leases.
    pub exclusive: u64,
    /// Requests that wait until another client has given back a lease.
    pub waiting: u64,
    /// What the store has counted.
    pub store: StoreMetrics,
}

impl ServerMetrics {
    /// Adds what another server of the same process has counted.
    pub fn add(&mut self, other: &Self) {
        if self.requests.is_empty() {
            self.requests.clone_from(&other.requests);
        } else {
            let counts = self.requests.iter_mut().zip(&other.requests);
            counts.for_each(|((_, count), (_, more))| *count += more);
        }
        self.recalls += other.recalls;
        self.batches += other.batches;
        self.sessions += other.sessions;
        self.shared += other.shared;
        self.exclusive += other.exclusive;
        self.waiting += other.waiting;
        self.store.add(&other.store);
    }
}

impl<S: Store> Server<S> {
    /// Returns counters and gauges.
    pub fn metrics(&self) -> ServerMetrics {
        let leases = self.sessions.iter().map(|(number, _)| self.leases.counts(number));
        let (shared, exclusive) =
            leases.fold((0, 0), |all, leases| (all.0 + leases.0, all.1 + leases.1));
        ServerMetrics {
            requests: self.counters.requests.of(RequestKind::ALL),
            recalls: self.counters.recalls,
            batches: self.counters.batches,
            sessions: self.sessions.len() as u64,
            shared,
            exclusive,
            waiting: self.queue.iter().count() as u64,
            store: self.store.metrics(),
        }
    }
}
