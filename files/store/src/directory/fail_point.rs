//! A simulated crash: the store ends before its n-th change of the directory or of its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Panic payload of a simulated crash.
#[derive(Debug)]
pub struct Crashed;

/// Counts changes down, and unwinds with [`Crashed`] at zero. Without a count, it has no effect.
#[derive(Clone, Debug, Default)]
pub struct FailPoint(Option<Arc<AtomicU64>>);

impl FailPoint {
    /// Returns a fail point that allows `changes` changes before it crashes.
    pub fn after(changes: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(changes))))
    }

    /// Returns the number of changes that may still pass.
    pub fn rest(&self) -> u64 {
        self.0.as_ref().map_or(u64::MAX, |rest| rest.load(Ordering::Relaxed))
    }

    /// Returns whether the crash is now.
    pub(crate) fn is_due(&self) -> bool {
        let Some(rest) = &self.0 else { return false };
        rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rest| rest.checked_sub(1)).is_err()
    }

    /// Crashes, without the message of a panic.
    pub(crate) fn crash() -> ! {
        std::panic::resume_unwind(Box::new(Crashed));
    }

    /// Passes one change, or crashes before it.
    pub(crate) fn pass(&self) {
        if self.is_due() {
            Self::crash();
        }
    }
}
