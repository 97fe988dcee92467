//! Lock waits, each recorded within a nanosecond or two; a histogram would extend the hold of the
//! lock.

use apus_report::stats::Latencies;

/// Waits in nanoseconds.
pub(super) struct Waits {
    new: Vec<u32>,
    /// Waits that `new` had no room for.
    before: Latencies,
}

/// Capacity of `new`: 4 MB.
const MOST: usize = 1 << 20;

impl Waits {
    /// Returns an empty record.
    pub(super) fn new() -> Self {
        Self { new: Vec::with_capacity(MOST), before: Latencies::new() }
    }

    /// Records a wait.
    #[inline]
    pub(super) fn record(&mut self, nanoseconds: u64) {
        if self.new.len() == MOST {
            self.flush();
        }
        // No worker waits for four seconds.
        self.new.push(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
    }

    #[cold]
    fn flush(&mut self) {
        self.new.drain(..).for_each(|wait| self.before.record(wait.into()));
    }

    /// Takes all waits out.
    pub(super) fn take(&mut self) -> Latencies {
        self.flush();
        std::mem::take(&mut self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_waits_are_kept_until_they_are_taken() {
        let mut waits = Waits::new();
        (0..MOST + 10).for_each(|_| waits.record(500));
        waits.record(u64::MAX);
        let taken = waits.take();
        assert_eq!((taken.len(), taken.quantile(0.5)), (MOST as u64 + 11, 500));
        assert!(taken.quantile(1.0) >= u32::MAX.into());
        assert!(waits.take().is_empty());
    }
}
