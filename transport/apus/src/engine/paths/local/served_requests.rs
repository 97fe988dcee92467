//! The requests through shared memory that this endpoint serves.

use std::collections::HashSet;

/// Requests that were neither answered nor dropped (LOCALCALL-2), and the cancelled ones among
/// them.
#[derive(Debug, Default)]
pub(super) struct ServedRequests {
    open: u64,
    /// Cancelled requests, by the number of the pair and the id.
    cancelled: HashSet<(u64, u64)>,
}

impl ServedRequests {
    /// Returns the number of open requests.
    pub(super) const fn open(&self) -> u64 {
        self.open
    }

    /// Accepts a request.
    pub(super) const fn accept(&mut self) {
        self.open += 1;
    }

    /// Finishes a request.
    pub(super) const fn finish(&mut self) {
        self.open -= 1;
    }

    /// Records that a client does not wait for the response to a request any more. Has no effect if
    /// it was answered already.
    pub(super) fn cancel(&mut self, pair: u64, id: u64, limit: u64) {
        if self.open == 0 {
            self.cancelled.clear();
        } else if (self.cancelled.len() as u64) < limit {
            self.cancelled.insert((pair, id));
        }
        // Beyond the limit a client cancels requests that it never sent; the responses are sent and
        // ignored.
    }

    /// Returns whether a request was cancelled, and forgets that.
    #[inline]
    pub(super) fn take_cancelled(&mut self, pair: u64, id: u64) -> bool {
        !self.cancelled.is_empty() && self.cancelled.remove(&(pair, id))
    }

    /// Returns whether a request was cancelled.
    pub(super) fn is_cancelled(&self, pair: u64, id: u64) -> bool {
        self.cancelled.contains(&(pair, id))
    }

    /// Removes cancellations of a pair that has ended.
    pub(super) fn forget_pair(&mut self, pair: u64) {
        self.cancelled.retain(|(other, _)| *other != pair);
    }
}
