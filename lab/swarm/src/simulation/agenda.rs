//! Agenda: scheduled tasks of a host's applications.

use std::collections::BTreeMap;

use super::stack::RpcHandle;
use crate::observation::CallId;
use apus_workload::time::Nanos;

/// A scheduled task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Answer a request, and release its `taken` bytes unless they were consumed already.
    ServerAction { rpc: RpcHandle, call: Option<CallId>, taken: Option<usize> },
    /// Cancel a call.
    Cancel { rpc: RpcHandle, call: CallId },
    /// Call the hostile host.
    Bait,
}

/// Tasks by time; tasks with equal times in order of insertion.
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

    /// Returns the time of the next task.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.tasks.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the next task that is due at `now`.
    pub(super) fn take(&mut self, now: Nanos) -> Option<Task> {
        let first = self.tasks.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}
