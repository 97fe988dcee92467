//! Events for the application, counters, and notes on single RPCs.

use crate::event::Event;
use crate::metrics::Metrics;
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
        if self.notes.are_wanted_of(tables.rpcs[rpc].id) {
            self.note(tables, rpc, what);
        }
    }

    /// Notes what happens to a live RPC, if notes are wanted.
    #[cold]
    pub(crate) fn note(&mut self, tables: &Tables, rpc: RpcKey, what: ProbeKind) {
        let entry = &tables.rpcs[rpc];
        self.notes.add(Some(entry.sender_id()), tables.peers[entry.peer].address, what);
    }

    /// Notes that a live call, which was made at `started`, completes, if it was slow.
    #[inline]
    pub(crate) fn note_duration(
        &mut self,
        tables: &Tables,
        rpc: RpcKey,
        now: Instant,
        started: Instant,
    ) {
        if self.notes.are_wanted() {
            let took = now - started;
            if self.notes.is_slow(took) {
                self.note(tables, rpc, ProbeKind::Slow { took });
            }
        }
    }
}
