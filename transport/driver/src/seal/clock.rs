//! The clock of handshakes and keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A monotonic clock. Its times are durations since an origin.
#[derive(Clone, Debug)]
pub enum SealClock {
    /// The system's monotonic clock, since this instant.
    System(Instant),
    /// A simulator sets the time, in nanoseconds.
    Simulated(Arc<AtomicU64>),
}

impl SealClock {
    /// Returns the system's clock with the present time as its origin.
    #[must_use]
    pub fn system() -> Self {
        Self::System(Instant::now())
    }

    /// Returns the time since the origin.
    pub(super) fn now(&self) -> Duration {
        match self {
            Self::System(origin) => origin.elapsed(),
            Self::Simulated(time) => Duration::from_nanos(time.load(Ordering::Relaxed)),
        }
    }

    /// Returns the instant `at` after the origin; `None` with a simulated clock.
    pub(super) fn instant(&self, at: Duration) -> Option<Instant> {
        match self {
            Self::System(origin) => origin.checked_add(at),
            Self::Simulated(_) => None,
        }
    }
}
