//! Progress: whether a message comes closer to its end.
//!
//! Life is no progress: a peer that answers every question may keep a message waiting forever. Only
//! positions that were never reached before count, and enough of them: a byte now and then would
//! keep any room.

use crate::limits::PROGRESS_BYTES;
use crate::time::Instant;

/// When a message made progress last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    at: Instant,
    /// The positions that it had reached then.
    reached: u32,
}

impl Progress {
    /// A message that starts at `now`.
    pub(crate) const fn starting(now: Instant) -> Self {
        Self { at: now, reached: 0 }
    }

    /// Records that the message has reached `reached` positions at `now`, in all. Returns whether
    /// that is progress.
    pub(crate) const fn note(&mut self, now: Instant, reached: u32) -> bool {
        let is_progress = reached.saturating_sub(self.reached) >= PROGRESS_BYTES;
        if is_progress {
            self.restart(now, reached);
        }
        is_progress
    }

    /// Records that the message could make no progress until `now`, or has just made some.
    pub(crate) const fn restart(&mut self, now: Instant, reached: u32) {
        (self.at, self.reached) = (now, reached);
    }

    /// When it made progress last.
    pub(crate) const fn at(&self) -> Instant {
        self.at
    }
}
