//! Report of the delay program.

use serde::{Deserialize, Serialize};

/// Report of the delay program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelayReport {
    /// Packets that were forwarded.
    pub packets: u64,
    /// Packets dropped because the interface did not accept them.
    pub dropped: u64,
    /// Median lateness of packets (departure minus due time), in microseconds.
    pub late_p50_us: f64,
    /// The 99th percentile of that time.
    pub late_p99_us: f64,
}
