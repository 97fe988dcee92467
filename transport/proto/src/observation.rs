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
    /// Records an event of a live RPC, if notes are enabled.
    #[cold]
    pub(crate) fn note(&mut self, tables: &Tables, rpc: RpcKey, what: ProbeKind) {
        let entry = &tables.rpcs[rpc];
        self.notes.add(Some(entry.sender_id()), tables.peers[entry.peer].address, what);
    }
}

/// Returns the exemplar of a live RPC that has taken `nanos` until now.
#[cold]
pub(crate) fn exemplar(tables: &Tables, rpc: RpcKey, now: Instant, nanos: u64) -> Exemplar {
    let entry = &tables.rpcs[rpc];
    Exemplar { peer: tables.peers[entry.peer].address, id: entry.id, nanos, at: now }
}
