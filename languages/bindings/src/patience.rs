//! How long a caller waits, and how often it is asked whether to go on.

use std::time::{Duration, Instant};

/// Interval at which a waiting caller is asked whether to keep waiting. Chosen by us: the delay
/// after Ctrl-C is not noticeable, and twenty wake-ups per second cost almost no time.
pub const INTERVAL: Duration = Duration::from_millis(50);

/// The limit of a wait: its longest time, and a check that may end it early.
pub struct Patience<'a> {
    /// The longest time to wait; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Called after each [`INTERVAL`]; `false` ends the wait. `None`: the wait continues.
    pub keep_waiting: Option<&'a mut dyn FnMut() -> bool>,
}

impl Patience<'_> {
    /// Returns a limit without a check.
    #[must_use]
    pub const fn up_to(timeout: Option<Duration>) -> Self {
        Self { timeout, keep_waiting: None }
    }

    /// Returns the end of a wait that starts now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    /// Returns the end of the next part of a wait that ends at `deadline`.
    pub(crate) fn next(&self, deadline: Option<Instant>) -> Option<Instant> {
        let part = self.keep_waiting.is_some().then(|| Instant::now() + INTERVAL);
        match (part, deadline) {
            (Some(part), Some(deadline)) => Some(part.min(deadline)),
            (part, deadline) => part.or(deadline),
        }
    }

    /// Returns whether to continue after a part of the wait.
    pub(crate) fn continues(&mut self, deadline: Option<Instant>) -> bool {
        deadline.is_none_or(|deadline| Instant::now() < deadline)
            && self.keep_waiting.as_mut().is_none_or(|keep_waiting| keep_waiting())
    }
}
