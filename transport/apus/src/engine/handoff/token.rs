//! Identities of threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of a thread of this process; cheaper to compare than a `ThreadId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadToken(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static TOKEN: ThreadToken = ThreadToken(NEXT.fetch_add(1, Ordering::Relaxed));
}

impl ThreadToken {
    /// Returns the token of the calling thread.
    pub(crate) fn current() -> Self {
        TOKEN.with(|token| *token)
    }
}
