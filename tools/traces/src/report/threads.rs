//! What did a thread do between two moments?

use crate::merge::{Merged, Stamped};
use apus_trace::event::Event;

/// The records of each thread, to be looked up by time.
#[derive(Debug)]
pub(super) struct Threads {
    records: Vec<Vec<Stamped>>,
}

impl Threads {
    pub(super) fn of(merged: &Merged) -> Self {
        Self { records: merged.by_thread() }
    }

    /// All records of a thread, the earliest first.
    pub(super) fn all(&self, thread: usize) -> &[Stamped] {
        &self.records[thread]
    }

    /// Those from one moment to another, both included.
    pub(super) fn between(&self, thread: usize, from: i64, until: i64) -> &[Stamped] {
        let all = self.all(thread);
        let first = all.partition_point(|stamped| stamped.at < from);
        let end = all.partition_point(|stamped| stamped.at <= until).max(first);
        &all[first..end]
    }

    /// Whether the thread recorded an event between two moments.
    pub(super) fn has(&self, thread: usize, event: Event, from: i64, until: i64) -> bool {
        let recorded = self.between(thread, from, until);
        recorded.iter().any(|stamped| stamped.record.event() == Some(event))
    }
}
