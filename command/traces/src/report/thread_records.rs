//! Records by thread, searchable by time.

use crate::merge::{MergedTraces, TimedRecord};
use apus_trace::event::Event;

/// The records of each thread.
#[derive(Debug)]
pub(super) struct ThreadRecords {
    records: Vec<Vec<TimedRecord>>,
}

impl ThreadRecords {
    pub(super) fn of(merged: &MergedTraces) -> Self {
        Self { records: merged.by_thread() }
    }

    /// Returns all records of a thread, the earliest first.
    pub(super) fn all(&self, thread: usize) -> &[TimedRecord] {
        &self.records[thread]
    }

    /// Returns the records of an interval, bounds included.
    pub(super) fn between(&self, thread: usize, from: i64, until: i64) -> &[TimedRecord] {
        let all = self.all(thread);
        let first = all.partition_point(|entry| entry.at < from);
        let end = all.partition_point(|entry| entry.at <= until).max(first);
        &all[first..end]
    }

    /// Returns whether the thread recorded an event within an interval.
    pub(super) fn has(&self, thread: usize, event: Event, from: i64, until: i64) -> bool {
        let recorded = self.between(thread, from, until);
        recorded.iter().any(|entry| entry.record.event() == Some(event))
    }
}
