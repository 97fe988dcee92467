//! The summary of the slowdowns of one run.

use serde::{Deserialize, Serialize};

/// The slowdowns and latencies of one run. Slowdowns are plain factors, times are microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Slowdowns by size, smallest first.
    pub groups: Vec<Group>,
    /// Slowdowns of short messages.
    pub short: Tail,
    /// Slowdowns of all messages.
    pub all: Tail,
    /// Latencies of short messages.
    pub short_us: Tail,
    /// The latency of short messages at each fraction of [`CDF`].
    pub short_cdf_us: Vec<f64>,
    /// Mean slowdown, each message weighted by its bytes.
    pub mean_by_bytes: f64,
    /// Number of messages.
    pub messages: u64,
}

/// Messages of about one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Largest size, in bytes.
    pub upto: u32,
    /// Number of messages.
    pub count: u64,
    /// Their slowdowns.
    #[serde(flatten)]
    pub tail: Tail,
}

/// Median and tail. All 0 without messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Half are not greater.
    pub p50: f64,
    /// 99 % are not greater.
    pub p99: f64,
    /// 99.9 % are not greater.
    pub p999: f64,
}

/// The fractions for plotting the latencies of short messages.
pub const CDF: [f64; 28] = [
    0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8,
    0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995,
];

/// The contender that the others are compared with.
pub const OURS: &str = "apus";

/// One of the percentiles of a [`Tail`].
#[derive(Clone, Copy, Debug)]
pub struct Percentile {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub of: fn(&Tail) -> f64,
}

impl Percentile {
    /// The median.
    pub const P50: Self = Self { name: "p50", of: |tail| tail.p50 };
    /// The 99th.
    pub const P99: Self = Self { name: "p99", of: |tail| tail.p99 };
    /// The 99.9th.
    pub const P999: Self = Self { name: "p99.9", of: |tail| tail.p999 };
    /// All three.
    pub const ALL: [Self; 3] = [Self::P50, Self::P99, Self::P999];
}
