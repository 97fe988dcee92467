//! The outstanding calls through shared memory: number, size, deadlines.

use crate::engine::state::Key;
use apus_proto::Instant;
use std::collections::BTreeSet;

/// Resources of the outstanding calls through shared memory.
#[derive(Debug, Default)]
pub(super) struct OutstandingCalls {
    calls: usize,
    /// Bytes of their requests.
    bytes: u64,
    deadlines: BTreeSet<(Instant, Key)>,
    /// Whether a call was rejected because of these limits.
    wants_room: bool,
}

impl OutstandingCalls {
    /// Returns whether there is no call.
    pub(super) const fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// Returns whether a request of `bytes` fits under `limit`; a first one always does. If not,
    /// the caller is owed a notification of room.
    pub(super) const fn has_room(&mut self, bytes: u64, limit: u64) -> bool {
        let has_room = self.bytes == 0 || self.bytes + bytes <= limit;
        self.wants_room |= !has_room;
        has_room
    }

    /// Adds a call.
    pub(super) fn insert(&mut self, key: Key, bytes: u64, deadline: Option<Instant>) {
        self.calls += 1;
        self.bytes += bytes;
        self.deadlines.extend(deadline.map(|at| (at, key)));
    }

    /// Sets the deadline of a call that had none.
    pub(super) fn set_deadline(&mut self, key: Key, deadline: Instant) {
        self.deadlines.insert((deadline, key));
    }

    /// Removes a call, with the bytes and deadline of its insertion. Returns whether a notification
    /// of room is owed.
    #[must_use]
    pub(super) fn remove(&mut self, key: Key, bytes: u64, deadline: Option<Instant>) -> bool {
        self.calls -= 1;
        self.bytes -= bytes;
        if let Some(at) = deadline {
            self.deadlines.remove(&(at, key));
        }
        std::mem::take(&mut self.wants_room)
    }

    /// Returns the earliest deadline.
    pub(super) fn next_deadline(&self) -> Instant {
        self.deadlines.first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Returns a call whose deadline has passed.
    pub(super) fn expired(&self, now: Instant) -> Option<Key> {
        self.deadlines.first().filter(|(at, _)| *at <= now).map(|(_, key)| *key)
    }
}
