//! Which thread is this?

use std::sync::atomic::{AtomicU64, Ordering};

/// Tells threads of the process apart; cheaper to compare than a `ThreadId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadToken(u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static TOKEN: ThreadToken = ThreadToken(NEXT.fetch_add(1, Ordering::Relaxed));
}

impl ThreadToken {
    /// The token of the present thread.
    pub(crate) fn current() -> Self {
        TOKEN.with(|token| *token)
    }
}
