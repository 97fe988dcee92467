//! What is an operation, and what is seen of its lock?
//!
//! A message of one byte, written into a pair and read from it by the same worker: no switch to another task, and
//! nothing that has to be waited for but locks.

use crate::clock;
use crate::error::Error;
use crate::stats::Latencies;

/// Somebody's way to write a byte and to read it.
pub(super) trait Exchange {
    /// One operation.
    ///
    /// # Errors
    ///
    /// The message did not come, or another one did.
    fn operate(&mut self) -> Result<(), Error>;

    /// One operation, with a look at the clock before and after each lock.
    ///
    /// # Errors
    ///
    /// As for [`Exchange::operate`].
    fn observe(&mut self, seen: &mut Seen) -> Result<(), Error>;
}

/// What was seen of locks.
pub(super) struct Seen {
    /// Nanoseconds from wanting a lock to having it.
    pub(super) wait: Latencies,
    /// Nanoseconds from having it to letting it go.
    pub(super) hold: Latencies,
    /// What one look at the clock adds to either.
    clock: u64,
}

/// Looks at the clock of which the least one is what it costs.
const LOOKS: usize = 1000;

impl Seen {
    /// Nothing yet.
    pub(super) fn nothing() -> Self {
        let look = |_| {
            let before = clock::now();
            clock::now() - before
        };
        let clock = (0..LOOKS).map(look).min().unwrap_or(0);
        Self { wait: Latencies::new(), hold: Latencies::new(), clock }
    }

    /// A lock was wanted at `asked`, held from `got` on.
    pub(super) fn waited(&mut self, asked: u64, got: u64) {
        self.wait.record((got - asked).saturating_sub(self.clock));
    }

    /// A lock was held from `got` to `gave`.
    pub(super) fn held(&mut self, got: u64, gave: u64) {
        self.hold.record((gave - got).saturating_sub(self.clock));
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        *self = Self { wait: Latencies::new(), hold: Latencies::new(), clock: self.clock };
    }
}
