//! How much longer did each message of a run take than it had to?

use serde::{Deserialize, Serialize};

use super::summary::{CDF, Group, Summary, Tail};
use crate::stats::Latencies;

/// What slowdown is measured against, and how messages are grouped.
///
/// Slowdown is the time from the instant at which a request was due to its complete reply, divided
/// by the best time in which any contender carried a message of that size when nothing else was
/// running. All contenders are held against the same base.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Each size with its best time in nanoseconds, smallest size first.
    pub best: Vec<(u32, u64)>,
    /// Largest size of each group, smallest first; the last one is the largest of all.
    pub groups: Vec<u32>,
    /// Largest size of the short messages.
    pub short: u32,
}

impl Scale {
    fn best(&self, size: u32) -> u64 {
        let found = self.best.binary_search_by_key(&size, |&(size, _)| size);
        self.best[found.expect("every size of the workload has been measured")].1
    }

    fn group(&self, size: u32) -> usize {
        self.groups.partition_point(|&upto| upto < size)
    }
}

/// Slowdowns of one run.
#[derive(Clone, Debug)]
pub struct Slowdowns {
    scale: Scale,
    groups: Vec<Latencies>,
    all: Latencies,
    short: Latencies,
    short_latency: Latencies,
    /// Sum over the messages of their slowdown times their bytes, and of their bytes.
    weighted: f64,
    bytes: f64,
}

/// Slowdowns are recorded as whole thousandths.
const THOUSANDTHS: f64 = 1000.0;

impl Slowdowns {
    /// No messages yet.
    #[must_use]
    pub fn new(scale: Scale) -> Self {
        let groups = scale.groups.iter().map(|_| Latencies::new()).collect();
        Self {
            scale,
            groups,
            all: Latencies::new(),
            short: Latencies::new(),
            short_latency: Latencies::new(),
            weighted: 0.0,
            bytes: 0.0,
        }
    }

    /// A message of `size` bytes took `latency` nanoseconds.
    ///
    /// # Panics
    ///
    /// If the scale lacks that size.
    pub fn record(&mut self, size: u32, latency: u64) {
        let slowdown = latency as f64 / self.scale.best(size) as f64;
        let thousandths = (slowdown * THOUSANDTHS).round() as u64;
        self.groups[self.scale.group(size)].record(thousandths);
        self.all.record(thousandths);
        if size <= self.scale.short {
            self.short.record(thousandths);
            self.short_latency.record(latency);
        }
        self.weighted += slowdown * f64::from(size);
        self.bytes += f64::from(size);
    }

    /// What is kept of the run.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let micros = |fraction: f64| self.short_latency.quantile(fraction) as f64 / 1e3;
        let groups = self.scale.groups.iter().zip(&self.groups);
        Summary {
            groups: groups
                .map(|(&upto, group)| Group { upto, count: group.len(), tail: tail(group) })
                .collect(),
            short: tail(&self.short),
            all: tail(&self.all),
            short_us: Tail { p50: micros(0.5), p99: micros(0.99), p999: micros(0.999) },
            short_cdf_us: CDF.map(micros).to_vec(),
            mean_by_bytes: if self.bytes > 0.0 { self.weighted / self.bytes } else { 0.0 },
            messages: self.all.len(),
        }
    }
}

fn tail(thousandths: &Latencies) -> Tail {
    let at = |fraction| thousandths.quantile(fraction) as f64 / THOUSANDTHS;
    Tail { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale {
            best: vec![(100, 10_000), (1000, 20_000), (5000, 50_000)],
            groups: vec![100, 5000],
            short: 1000,
        }
    }

    #[test]
    fn a_slowdown_is_held_against_the_best_time_of_its_size() {
        let mut slowdowns = Slowdowns::new(scale());
        slowdowns.record(100, 20_000);
        slowdowns.record(1000, 25_000);
        slowdowns.record(5000, 75_000);
        let summary = slowdowns.summary();
        let p50s: Vec<f64> = summary.groups.iter().map(|group| group.tail.p50).collect();
        assert_eq!(p50s, [2.0, 1.25], "100 bytes; 1000 and 5000 bytes");
        let tail = Tail { p50: 1.25, p99: 1.5, p999: 1.5 };
        assert_eq!(summary.groups[1], Group { upto: 5000, count: 2, tail });
        assert_eq!(summary.all, Tail { p50: 1.5, p99: 2.0, p999: 2.0 });
        assert_eq!(summary.messages, 3);
    }

    #[test]
    fn short_messages_are_counted_for_themselves() {
        let mut slowdowns = Slowdowns::new(scale());
        slowdowns.record(100, 20_000);
        slowdowns.record(5000, 5_000_000);
        let summary = slowdowns.summary();
        assert_eq!(summary.short, Tail { p50: 2.0, p99: 2.0, p999: 2.0 });
        assert!((summary.short_us.p99 - 20.0).abs() < 0.02, "{summary:?}");
        assert_eq!(summary.short_cdf_us.len(), CDF.len());
    }

    #[test]
    fn the_mean_by_bytes_weighs_long_messages_more() {
        let mut slowdowns = Slowdowns::new(scale());
        slowdowns.record(1000, 20_000);
        slowdowns.record(5000, 200_000);
        assert!(
            (slowdowns.summary().mean_by_bytes - (1000.0 + 5000.0 * 4.0) / 6000.0).abs() < 1e-9
        );
    }

    #[test]
    fn no_messages_are_no_slowdown() {
        let summary = Slowdowns::new(scale()).summary();
        assert_eq!((summary.messages, summary.mean_by_bytes, summary.all.p99), (0, 0.0, 0.0));
    }
}
