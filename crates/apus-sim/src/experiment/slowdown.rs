//! How much slower than on an idle fabric were messages of each size?
//!
//! Slowdown is the time that a message took divided by the best possible one. Messages are put into bins by
//! size, between the sizes that close the percentiles [`CLOSINGS`] of the distribution: a few sizes each,
//! so that a bin compares with the figure that is published for the size that closes it. The longest
//! messages, a thousandth of all, have a bin of their own.

use apus_workload::Sizes;

/// Percentiles of the messages, ordered by size, at which bins end. Source: published numbers A.4.
pub const CLOSINGS: [f64; 12] =
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 100.0];

/// Share of the messages, in per cent, that the last bin holds at least: the longest ones and no others.
/// Source: ours; with fewer, its p99 would rest on a handful of messages.
const LONGEST: f64 = 0.1;

/// Slowdown of the messages of neighbouring sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// The percentile of the messages that the bin closes.
    pub percentile: f64,
    /// Its longest messages, in bytes.
    pub upto: u32,
    /// Messages in it.
    pub count: u64,
    /// Median; 0 without messages, as all figures of the bin.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Slowdowns of all messages, and what summarises them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slowdown {
    /// By size, smallest first. Percentiles that one size closes together are one bin.
    pub by_size: Vec<Bin>,
    /// The greatest p99 of a bin in the smaller half of the messages.
    pub small_half_p99_max: f64,
    /// Mean over messages.
    pub mean_by_messages: f64,
    /// Mean over bytes.
    pub mean_by_bytes: f64,
    /// p99 of the bin with the longest messages.
    pub largest_bin_p99: f64,
}

/// Collects slowdowns.
#[derive(Clone, Debug)]
pub(super) struct Slowdowns {
    bins: Vec<Samples>,
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
    pub(super) fn new(sizes: &Sizes) -> Self {
        let mut bins: Vec<Samples> = Vec::new();
        for (percentile, upto) in closings(sizes) {
            match bins.last_mut() {
                Some(last) if last.upto == upto => last.percentile = percentile,
                _ => bins.push(Samples { percentile, upto, values: Vec::new() }),
            }
        }
        Self { bins, messages: 0.0, bytes: 0.0, by_messages: 0.0, by_bytes: 0.0 }
    }

    /// Notes that a message of `bytes` bytes took `slowdown` times as long as necessary.
    pub(super) fn record(&mut self, bytes: u32, slowdown: f64) {
        let bin = self.bins.partition_point(|bin| bin.upto < bytes).min(self.bins.len() - 1);
        self.bins[bin].values.push(slowdown as f32);
        self.messages += 1.0;
        self.bytes += f64::from(bytes);
        self.by_messages += slowdown;
        self.by_bytes += slowdown * f64::from(bytes);
    }

    pub(super) fn summary(&mut self) -> Slowdown {
        let by_size: Vec<Bin> = self.bins.iter_mut().map(Samples::bin).collect();
        // A bin that closes above the median has messages of the smaller half if there is none below.
        let half = by_size.iter().take_while(|bin| bin.percentile <= 50.0).count().max(1);
        Slowdown {
            small_half_p99_max: by_size[..half].iter().map(|bin| bin.p99).fold(0.0, f64::max),
            mean_by_messages: self.by_messages / self.messages.max(1.0),
            mean_by_bytes: self.by_bytes / self.bytes.max(1.0),
            largest_bin_p99: by_size.last().map_or(0.0, |bin| bin.p99),
            by_size,
        }
    }
}

/// Percentiles and sizes at which bins end.
fn closings(sizes: &Sizes) -> Vec<(f64, u32)> {
    let mut closings: Vec<(f64, u32)> =
        CLOSINGS.iter().map(|each| (*each, sizes.quantile(each / 100.0))).collect();
    let mut share = 0.0;
    let shorter = sizes.iter().rev().find(|(_, each)| {
        let enough = share >= LONGEST / 100.0;
        share += each;
        enough
    });
    if let Some((upto, _)) = shorter {
        let at = closings.partition_point(|(_, each)| *each < upto);
        closings.insert(at, (100.0 * sizes.messages_up_to(upto), upto));
    }
    closings
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

    /// The smallest value that so many of the values do not exceed (nearest rank).
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
        let slowdowns = Slowdowns::new(Workload::published(4).sizes());
        let ends: Vec<u32> = slowdowns.bins.iter().map(|bin| bin.upto).collect();
        assert_eq!(ends.len(), 13);
        assert_eq!((ends[4], ends[11], ends[12]), (655, 8_582_787, 10_000_000));
    }

    #[test]
    fn percentiles_that_one_size_closes_are_one_bin() {
        let mut slowdowns = Slowdowns::new(&Sizes::fixed(100));
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
    fn means_weigh_messages_or_bytes() {
        let mut slowdowns = Slowdowns::new(Workload::published(2).sizes());
        slowdowns.record(10, 1.0);
        slowdowns.record(990, 3.0);
        let summary = slowdowns.summary();
        assert_eq!((summary.mean_by_messages, summary.mean_by_bytes), (2.0, 2.98));
    }

    #[test]
    fn nothing_measured_is_zero() {
        let summary = Slowdowns::new(&Sizes::fixed(9)).summary();
        assert_eq!((summary.small_half_p99_max, summary.mean_by_bytes), (0.0, 0.0));
    }
}
