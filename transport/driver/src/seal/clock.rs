//! The time of handshakes and keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock in nanoseconds that does not go back.
#[derive(Clone, Debug)]
pub enum SealClock {
    /// The system's monotonic clock, since an instant.
    System(Instant),
    /// A simulator sets the time.
    Simulated(Arc<AtomicU64>),
}

impl SealClock {
    /// Returns the system's clock; it is 0 now.
    #[must_use]
    pub fn system() -> Self {
        Self::System(Instant::now())
    }

    /// Returns the time.
    pub(super) fn now(&self) -> u64 {
        match self {
            Self::System(origin) => u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Simulated(time) => time.load(Ordering::Relaxed),
        }
    }

    /// Returns the instant at which the time is `at`; `None` if there is none.
    pub(super) fn instant(&self, at: u64) -> Option<Instant> {
        match self {
            Self::System(origin) => origin.checked_add(Duration::from_nanos(at)),
            Self::Simulated(_) => None,
        }
    }
}
