//! How often was a lock of this crate found taken, and how long was it waited for?
//!
//! With the feature `lab` only. Who finds a lock free counts nothing, so that counting changes nothing for them.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};

static TIMES: AtomicU64 = AtomicU64::new(0);
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);

/// Locks that were found taken, in this process since it began: those of all pairs, and of their registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How often.
    pub times: u64,
    /// How long they were waited for, all together.
    pub waited: Duration,
}

impl Taken {
    /// Until now.
    #[must_use]
    pub fn so_far() -> Self {
        let waited = Duration::from_nanos(NANOSECONDS.load(Ordering::Relaxed));
        Self { times: TIMES.load(Ordering::Relaxed), waited }
    }
}

/// A lock was found taken, and waited for so long.
pub(crate) fn note(waited: Duration) {
    TIMES.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
    NANOSECONDS.fetch_add(nanoseconds, Ordering::Relaxed);
}
