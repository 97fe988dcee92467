//! Waits at a lock, recorded within a nanosecond or two.
//!
//! A histogram would take longer, while the lock is held.

use apus_report::stats::Latencies;

/// Waits in nanoseconds.
pub(super) struct Waits {
    new: Vec<u32>,
    /// Those for which there was no room in `new`.
    before: Latencies,
}

/// Waits that are noted before they are worked up: 4 MB.
const MOST: usize = 1 << 20;

impl Waits {
    /// None yet.
    pub(super) fn none() -> Self {
        Self { new: Vec::with_capacity(MOST), before: Latencies::new() }
    }

    /// One more.
    #[inline]
    pub(super) fn note(&mut self, nanoseconds: u64) {
        if self.new.len() == MOST {
            self.work_up();
        }
        // No worker waits for four seconds.
        self.new.push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
    }

    #[cold]
    fn work_up(&mut self) {
        self.new.drain(..).for_each(|wait| self.before.record(wait.into()));
    }

    /// Returns all of them, which are forgotten.
    pub(super) fn take(&mut self) -> Latencies {
        self.work_up();
        std::mem::take(&mut self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_waits_are_kept_until_they_are_taken() {
        let mut waits = Waits::none();
        (0..MOST + 10).for_each(|_| waits.note(500));
        waits.note(u64::MAX);
        let taken = waits.take();
        assert_eq!((taken.len(), taken.quantile(0.5)), (MOST as u64 + 11, 500));
        assert!(taken.quantile(1.0) >= u32::MAX.into());
        assert!(waits.take().is_empty());
    }
}
