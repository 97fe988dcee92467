//! Counters of a server.

use crate::wire::RequestKind;

use super::access::Access;
use super::output::Counters;
use crate::store::{Store, StoreMetrics};

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
    /// Counters of the store.
    pub store: StoreMetrics,
}

impl ServerMetrics {
    /// Adds the counters of another server of the same process.
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

/// Returns the counters and gauges of a server.
pub(super) fn metrics<S: Store>(access: &Access<S>, counters: &Counters) -> ServerMetrics {
    let leases = &access.holdings.leases;
    let counts = access.sessions.iter().map(|(number, _)| leases.counts(number));
    let (shared, exclusive) =
        counts.fold((0, 0), |all, leases| (all.0 + leases.0, all.1 + leases.1));
    ServerMetrics {
        requests: counters.requests.of(RequestKind::ALL),
        recalls: counters.recalls,
        batches: counters.batches,
        sessions: access.sessions.len() as u64,
        shared,
        exclusive,
        waiting: access.holdings.queue.iter().count() as u64,
        store: access.store.metrics(),
    }
}
