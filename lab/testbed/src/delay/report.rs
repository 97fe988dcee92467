//! Report: what the delay program has done.

use serde::{Deserialize, Serialize};

/// What the delay program has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayReport {
    /// Packets that were forwarded.
    pub packets: u64,
    /// Packets that were dropped, as the interface did not take them.
    pub dropped: u64,
    /// Time by which packets left later than they were due: the median, in microseconds.
    pub late_p50_us: f64,
    /// The 99th percentile of that time.
    pub late_p99_us: f64,
}
