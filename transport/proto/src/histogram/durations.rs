//! Histograms of durations.
//!
//! Counting a duration takes two additions and no allocation. The fine buckets have a width of an
//! eighth of their octave: a quantile is at most 12.5 % off, from 8 ns to 137 s. The coarse buckets
//! are OpenTelemetry's recommendation for the durations of RPCs; they are counted separately, so
//! that they are exact.

use crate::histogram::octaves::{self, PER_OCTAVE};

/// Fine buckets: eight below 8 ns, then 34 octaves. Longer durations count in the last bucket.
const FINE: usize = PER_OCTAVE as usize * 35;

/// Upper bounds of the coarse buckets in nanoseconds, the last one (without a bound) aside: what
/// OpenTelemetry recommends for `rpc.client.call.duration` and `rpc.server.call.duration`.
pub const COARSE_BOUNDS: [u64; 14] = [
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    75_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    7_500_000_000,
    10_000_000_000,
];

/// Number of coarse buckets.
pub const COARSE_BUCKETS: usize = COARSE_BOUNDS.len() + 1;

/// Returns the coarse bucket that a duration of `nanos` nanoseconds belongs to, below
/// [`COARSE_BUCKETS`].
#[inline]
#[must_use]
pub fn coarse_bucket(nanos: u64) -> usize {
    // Nearly all are in the first bucket.
    let bucket = COARSE_BOUNDS.iter().position(|bound| nanos <= *bound);
    bucket.unwrap_or(COARSE_BOUNDS.len())
}

/// Durations in the coarse buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoarseHistogram {
    counts: [u64; COARSE_BUCKETS],
    nanos: u64,
}

impl CoarseHistogram {
    /// Counts a duration of `nanos` nanoseconds `times` times.
    #[inline]
    pub fn record(&mut self, nanos: u64, times: u64) {
        self.counts[coarse_bucket(nanos)] += times;
        self.nanos = self.nanos.saturating_add(nanos.saturating_mul(times));
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, more)| *sum += more);
        self.nanos = self.nanos.saturating_add(other.nanos);
    }

    /// Returns the number of durations in each bucket; the last one has those beyond all bounds.
    #[must_use]
    pub const fn counts(&self) -> &[u64; COARSE_BUCKETS] {
        &self.counts
    }

    /// Returns the sum of all durations in nanoseconds.
    #[must_use]
    pub const fn nanos(&self) -> u64 {
        self.nanos
    }

    /// Returns the number of all durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Durations in fine and in coarse buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationHistogram {
    fine: [u64; FINE],
    coarse: CoarseHistogram,
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self { fine: [0; FINE], coarse: CoarseHistogram::default() }
    }
}

impl DurationHistogram {
    /// Counts a duration of `nanos` nanoseconds `times` times.
    #[inline]
    pub fn record(&mut self, nanos: u64, times: u64) {
        self.fine[bucket(nanos)] += times;
        self.coarse.record(nanos, times);
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        self.fine.iter_mut().zip(&other.fine).for_each(|(sum, more)| *sum += more);
        self.coarse.add(&other.coarse);
    }

    /// Returns the fine buckets that are not empty, the shortest first: the longest duration that
    /// belongs to the bucket, in nanoseconds, and the number of durations in it. `u64::MAX` is no
    /// bound.
    pub fn fine(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.fine.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(index, count)| (longest(index), *count))
    }

    /// Returns the coarse buckets.
    #[must_use]
    pub const fn coarse(&self) -> &CoarseHistogram {
        &self.coarse
    }
}

/// The fine bucket that a duration belongs to.
const fn bucket(nanos: u64) -> usize {
    let index = octaves::bucket(nanos);
    if index < FINE { index } else { FINE - 1 }
}

/// The longest duration that belongs to a fine bucket.
const fn longest(index: usize) -> u64 {
    if index + 1 >= FINE { u64::MAX } else { octaves::largest(index) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_join_without_gaps() {
        for index in 1..FINE {
            assert_eq!(bucket(longest(index - 1)), index - 1);
            assert_eq!(bucket(longest(index - 1) + 1), index, "after {}", longest(index - 1));
        }
        assert_eq!(bucket(u64::MAX), FINE - 1);
        assert!(longest(FINE - 2) > 120_000_000_000, "two minutes have a bucket");
    }

    #[test]
    fn coarse_buckets_include_their_bounds() {
        let mut coarse = CoarseHistogram::default();
        coarse.record(5_000_000, 1);
        coarse.record(5_000_001, 2);
        coarse.record(11_000_000_000, 3);
        assert_eq!((coarse.counts()[0], coarse.counts()[1], coarse.counts()[14]), (1, 2, 3));
        assert_eq!((coarse.count(), coarse.nanos()), (6, 33_015_000_002));
    }

    #[test]
    fn sums_are_as_if_counted_in_one() {
        let (mut one, mut other, mut both) =
            <(DurationHistogram, DurationHistogram, DurationHistogram)>::default();
        one.record(700, 1);
        other.record(8_000_000, 64);
        both.record(700, 1);
        both.record(8_000_000, 64);
        one.add(&other);
        assert_eq!(one, both);
    }

    proptest! {
        #[test]
        fn a_bucket_is_no_wider_than_an_eighth(nanos in 8_u64..100_000_000_000) {
            let mut durations = DurationHistogram::default();
            durations.record(nanos, 1);
            let (longest, count) = durations.fine().next().unwrap();
            prop_assert_eq!(count, 1);
            prop_assert!(longest >= nanos && longest - nanos <= nanos / 8);
        }
    }
}
