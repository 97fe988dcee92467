//! Events for the application, counters, and notes on single RPCs.

use crate::event::Event;
use crate::metrics::{Exemplar, Metrics};
use crate::probe::{Notes, ProbeKind};
use crate::rpc::{RpcKey, Tables};
use crate::time::Instant;
use std::collections::VecDeque;

/// Events, counters and notes that wait to be fetched.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    /// Events for the application, the earliest first.
    pub(crate) events: VecDeque<Event>,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Notes on single RPCs.
    pub(crate) notes: Notes,
}

impl Observation {
    /// Notes what happens to a live RPC, if it is selected.
    #[inline]
    pub(crate) fn note_selected(&mut self, tables: &Tables, rpc: RpcKey, what: ProbeKind) {
        if self.notes.are_wanted() && self.notes.are_wanted_of(tables.rpcs[rpc].id) {
            self.note(tables, rpc, what);
        }
    }

    /// Notes what happens to a live RPC, if notes are wanted.
    #[cold]
    pub(crate) fn note(&mut self, tables: &Tables, rpc: RpcKey, what: ProbeKind) {
        let entry = &tables.rpcs[rpc];
        self.notes.add(Some(entry.sender_id()), tables.peers[entry.peer].address, what);
    }

    /// Counts a live call that has taken `nanos` until its response was complete. If it is selected, it becomes an exemplar.
    #[inline]
    pub(crate) fn count_answered(
        &mut self,
        tables: &Tables,
        rpc: RpcKey,
        now: Instant,
        nanos: u64,
    ) {
        self.metrics.calls.answered.record(nanos, 1);
        if self.notes.are_wanted() && self.notes.are_wanted_of(tables.rpcs[rpc].id) {
            let exemplar = exemplar(tables, rpc, now, nanos);
            self.metrics.calls.answered_exemplars.remember(exemplar);
        }
    }

    /// Counts a live request that has taken `nanos` until the application's reply. If it is selected, it becomes an exemplar.
    #[inline]
    pub(crate) fn count_served(&mut self, tables: &Tables, rpc: RpcKey, now: Instant, nanos: u64) {
        self.metrics.calls.served.record(nanos, 1);
        if self.notes.are_wanted() && self.notes.are_wanted_of(tables.rpcs[rpc].id) {
            let exemplar = exemplar(tables, rpc, now, nanos);
            self.metrics.calls.served_exemplars.remember(exemplar);
        }
    }
}

#[cold]
fn exemplar(tables: &Tables, rpc: RpcKey, now: Instant, nanos: u64) -> Exemplar {
    let entry = &tables.rpcs[rpc];
    Exemplar { peer: tables.peers[entry.peer].address, id: entry.id, nanos, at: now }
}
