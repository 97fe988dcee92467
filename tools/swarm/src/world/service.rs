//! What will the applications of a host do later?

use std::collections::BTreeMap;

use super::stack::Handle;
use crate::seen::CallId;
use apus_workload::time::Nanos;

/// Something that an application will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Answer a request, and let go of its `taken` bytes if they have not been taken yet.
    Answer { rpc: Handle, call: Option<CallId>, taken: usize },
    /// Let a call go.
    Cancel { rpc: Handle, call: CallId },
}

/// Tasks in order of time; those of the same time in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    tasks: BTreeMap<(Nanos, u64), Task>,
    sequence: u64,
}

impl Agenda {
    pub(super) fn put(&mut self, at: Nanos, task: Task) {
        self.sequence += 1;
        self.tasks.insert((at, self.sequence), task);
    }

    /// When something is to be done next.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.tasks.first_key_value().map(|((at, _), _)| *at)
    }

    /// What is to be done at `now` or before.
    pub(super) fn take(&mut self, now: Nanos) -> Option<Task> {
        let first = self.tasks.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
