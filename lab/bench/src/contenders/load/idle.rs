//! Behaviour of a load generator between requests.

use std::thread;
use std::time::Duration;

/// Maximum wait of one poll for replies, if no request is due.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(1);

/// Behaviour of the generator when it is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Polls again. Never late.
    Spin,
    /// Yields the core, because the server may share it.
    Yield,
    /// Waits inside the transport, in the poll mode of the transport's threads.
    Wait,
}

impl Idle {
    /// Returns how long the transport may wait if no request is due for `time`.
    pub(super) fn wait(self, time: impl FnOnce() -> Duration) -> Duration {
        if self == Self::Wait { time() } else { Duration::ZERO }
    }

    pub(super) fn pause(self) {
        if self == Self::Yield {
            thread::yield_now();
        }
    }
}
