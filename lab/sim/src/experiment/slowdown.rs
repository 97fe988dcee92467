//! Slowdown of messages by size.
//!
//! Slowdown is the completion time of a message divided by the best possible one. Messages are
//! sorted by size into bins that end at the percentiles [`CLOSINGS`] of the distribution: each bin
//! has a few sizes and compares with the figure published for its largest size. Only the last bin
//! is wide in W2 and W3, so the longest messages, a thousandth of all, are also reported
//! separately, and so are medium messages ([`MEDIUM`]).

use std::ops::RangeInclusive;

use apus_workload::SizeDistribution;

/// Upper percentile of each bin, with messages ordered by size. Source: docs/reference/papers.md,
/// *Slowdown by message size*.
pub const CLOSINGS: [f64; 12] =
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 100.0];

/// Lengths of medium messages, in multiples of the unscheduled bytes: they wait for grants, and a
/// round trip is a large part of their time. Chosen by us: the messages that SIRD (NSDI 2025) slows
/// down.
pub const MEDIUM: RangeInclusive<u32> = 2..=20;

/// Least share of the messages, in per cent, that count as the longest. Chosen by us: with fewer
/// messages, a p99 would depend on very few samples.
const LONGEST: f64 = 0.1;

/// Slowdown of the messages of neighbouring sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Percentile of the messages where the bin ends.
    pub percentile: f64,
    /// Size of its longest messages in bytes.
    pub upto: u32,
    /// Number of messages.
    pub count: u64,
    /// Median; like all figures of the bin, 0 without messages.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Slowdowns of all messages, with summaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slowdown {
    /// Bins, smallest sizes first. Percentiles at the same size are one bin.
    pub by_size: Vec<Bin>,
    /// Greatest p99 of the bins with the smaller half of the messages.
    pub small_half_p99_max: f64,
    /// Mean over messages.
    pub mean_by_messages: f64,
    /// Mean over bytes.
    pub mean_by_bytes: f64,
    /// p99 of the last bin.
    pub largest_bin_p99: f64,
    /// The longest messages, at least a thousandth of all; they are in the last bin as well.
    pub longest: Bin,
    /// The medium messages ([`MEDIUM`]); they are in other bins as well.
    pub medium: Bin,
}

/// Collector of slowdowns.
#[derive(Clone, Debug)]
pub(super) struct Slowdowns {
    bins: Vec<Samples>,
    longest: Samples,
    medium: Samples,
    /// Lengths of medium messages in bytes.
    between: RangeInclusive<u32>,
    /// Messages with more bytes than this count as the longest messages.
    shorter: u32,
    messages: f64,
    bytes: f64,
    by_messages: f64,
    by_bytes: f64,
}

#[derive(Clone, Debug)]
struct Samples {
    percentile: f64,
    upto: u32,
    values: Vec<f32>,
}

impl Slowdowns {
    /// Returns a collector without messages; `unscheduled` bytes of each leave without grants.
    pub(super) fn new(sizes: &SizeDistribution, unscheduled: u32) -> Self {
        let mut bins: Vec<Samples> = Vec::new();
        for percentile in CLOSINGS {
            let upto = sizes.quantile(percentile / 100.0);
            match bins.last_mut() {
                Some(last) if last.upto == upto => last.percentile = percentile,
                _ => bins.push(Samples { percentile, upto, values: Vec::new() }),
            }
        }
        let longest = Samples { percentile: 100.0, upto: sizes.largest(), values: Vec::new() };
        let between =
            unscheduled.saturating_mul(*MEDIUM.start())..=unscheduled.saturating_mul(*MEDIUM.end());
        let medium = Samples { percentile: 100.0, upto: *between.end(), values: Vec::new() };
        let shorter = below_the_longest(sizes);
        let (messages, bytes, by_messages, by_bytes) = (0.0, 0.0, 0.0, 0.0);
        Self { bins, longest, medium, between, shorter, messages, bytes, by_messages, by_bytes }
    }

    /// Records that a message of `bytes` bytes took `slowdown` times the best possible time.
    pub(super) fn record(&mut self, bytes: u32, slowdown: f64) {
        let bin = self.bins.partition_point(|bin| bin.upto < bytes).min(self.bins.len() - 1);
        self.bins[bin].values.push(slowdown as f32);
        if bytes > self.shorter {
            self.longest.values.push(slowdown as f32);
        }
        if self.between.contains(&bytes) {
            self.medium.values.push(slowdown as f32);
        }
        self.messages += 1.0;
        self.bytes += f64::from(bytes);
        self.by_messages += slowdown;
        self.by_bytes += slowdown * f64::from(bytes);
    }

    pub(super) fn summary(&mut self) -> Slowdown {
        let by_size: Vec<Bin> = self.bins.iter_mut().map(Samples::bin).collect();
        // If no bin ends below the median, the first one contains the smaller half.
        let half = by_size.iter().take_while(|bin| bin.percentile <= 50.0).count().max(1);
        Slowdown {
            small_half_p99_max: by_size[..half].iter().map(|bin| bin.p99).fold(0.0, f64::max),
            mean_by_messages: self.by_messages / self.messages.max(1.0),
            mean_by_bytes: self.by_bytes / self.bytes.max(1.0),
            largest_bin_p99: by_size.last().map_or(0.0, |bin| bin.p99),
            longest: self.longest.bin(),
            medium: self.medium.bin(),
            by_size,
        }
    }
}

/// Returns the largest size that is not one of the longest messages; 0 if all are.
fn below_the_longest(sizes: &SizeDistribution) -> u32 {
    let mut share = 0.0;
    let shorter = sizes.iter().rev().find(|(_, each)| {
        let enough = share >= LONGEST / 100.0;
        share += each;
        enough
    });
    shorter.map_or(0, |(size, _)| size)
}

impl Samples {
    fn bin(&mut self) -> Bin {
        self.values.sort_unstable_by(f32::total_cmp);
        Bin {
            percentile: self.percentile,
            upto: self.upto,
            count: self.values.len() as u64,
            p50: self.at(0.5),
            p99: self.at(0.99),
        }
    }

    /// Returns the smallest value that at least `share` of the values do not exceed (nearest rank).
    fn at(&self, share: f64) -> f64 {
        let rank = (share * self.values.len() as f64).ceil() as usize;
        self.values.get(rank.saturating_sub(1)).map_or(0.0, |value| f64::from(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_workload::Workload;

    #[test]
    fn bins_end_where_the_published_percentiles_do() {
        let slowdowns = Slowdowns::new(Workload::published(4).sizes(), 1);
        let ends: Vec<u32> = slowdowns.bins.iter().map(|bin| bin.upto).collect();
        assert_eq!(ends.len(), 12);
        assert_eq!((ends[4], ends[10], ends[11]), (655, 3_430_822, 10_000_000));
    }

    #[test]
    fn the_longest_messages_are_at_least_a_thousandth_of_all() {
        let shorter = |number| below_the_longest(Workload::published(number).sizes());
        assert_eq!(shorter(4), 8_582_787, "10 MB are 0.13 % of W4");
        assert!((10_000..30_000).contains(&shorter(2)), "{}", shorter(2));
        assert_eq!(below_the_longest(&SizeDistribution::fixed(9)), 0);
    }

    #[test]
    fn percentiles_at_one_size_are_one_bin() {
        let mut slowdowns = Slowdowns::new(&SizeDistribution::fixed(100), 1);
        for i in 1..=100 {
            slowdowns.record(100, f64::from(i));
        }
        let summary = slowdowns.summary();
        let bin = Bin { percentile: 100.0, upto: 100, count: 100, p50: 50.0, p99: 99.0 };
        assert_eq!(summary.by_size, [bin]);
        assert_eq!((summary.small_half_p99_max, summary.largest_bin_p99), (99.0, 99.0));
        assert_eq!((summary.mean_by_messages, summary.mean_by_bytes), (50.5, 50.5));
    }

    #[test]
    fn means_are_weighted_by_messages_or_bytes() {
        let mut slowdowns = Slowdowns::new(Workload::published(2).sizes(), 1);
        slowdowns.record(10, 1.0);
        slowdowns.record(990, 3.0);
        let summary = slowdowns.summary();
        assert_eq!((summary.mean_by_messages, summary.mean_by_bytes), (2.0, 2.98));
    }

    #[test]
    fn medium_messages_are_some_windows_long() {
        let mut slowdowns = Slowdowns::new(Workload::published(4).sizes(), 10_000);
        for (bytes, slowdown) in [(19_999, 9.0), (20_000, 2.0), (200_000, 3.0), (200_001, 9.0)] {
            slowdowns.record(bytes, slowdown);
        }
        let Bin { count, p99, .. } = slowdowns.summary().medium;
        assert_eq!((count, p99), (2, 3.0));
    }

    #[test]
    fn without_messages_the_summary_is_zero() {
        let summary = Slowdowns::new(&SizeDistribution::fixed(9), 1).summary();
        assert_eq!((summary.small_half_p99_max, summary.mean_by_bytes), (0.0, 0.0));
    }
}
