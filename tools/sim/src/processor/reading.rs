//! What a host's processor knows about packets that wait in its socket.
//!
//! A socket does not say when a packet has arrived. The bounds are those of the engine
//! (`crates/apus/src/engine/receive/reading.rs`).

use apus_workload::time::Nanos;

/// The bounds on how long packets have waited.
#[derive(Debug)]
pub(super) struct Reading {
    capacity: u64,
    /// Time of the last poll.
    polled_at: Nanos,
    /// Whether that poll left the socket empty.
    empty: bool,
    /// What had arrived by this time has been read when `unread` more bytes are.
    mark: Nanos,
    unread: u64,
}

impl Reading {
    pub(super) const fn new(capacity: u64) -> Self {
        Self { capacity, polled_at: 0, empty: true, mark: 0, unread: capacity }
    }

    /// Notes that an idle processor polls the socket at `now`, as it has done all the time.
    pub(super) const fn idle(&mut self, now: Nanos) {
        if self.empty {
            self.polled_at = now;
        }
    }

    /// Returns the time since which the packets of the poll at `now` have arrived, if it is known.
    pub(super) fn begin(&mut self, now: Nanos) -> Option<Nanos> {
        let since = self.empty.then_some(self.polled_at);
        self.polled_at = now;
        since
    }

    /// Notes that the poll has brought `bytes`, and whether it left the socket empty. Returns the
    /// time up to which everything that had arrived has been read, if it has changed.
    pub(super) fn finish(&mut self, bytes: u64, empty: bool) -> Option<Nanos> {
        self.empty = empty;
        self.unread = self.unread.saturating_sub(bytes);
        let read_up_to = if empty {
            self.polled_at
        } else if self.unread == 0 {
            self.mark
        } else {
            return None;
        };
        self.mark = self.polled_at;
        self.unread = self.capacity;
        Some(read_up_to)
    }
}
