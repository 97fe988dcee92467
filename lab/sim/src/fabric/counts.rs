//! Counts of a whole fabric, in addition to the counts of its ports.

use crate::network::HostCounters;
use apus_workload::time::Nanos;

/// Counts of the whole fabric, in addition to the counts of each port.
#[derive(Debug, Default)]
pub(super) struct FabricCounts {
    /// Start of the measurement.
    pub(super) since: Nanos,
    pub(super) level_bytes: [u64; 8],
    pub(super) data_packets: u64,
    pub(super) packets: u64,
    /// Time between two samples.
    pub(super) sample_every: Nanos,
    pub(super) samples: u64,
    /// Idle links whose hosts withheld grants, summed over all samples.
    pub(super) wasted: u64,
    /// Counters of all hosts at the start.
    pub(super) hosts: HostCounters,
}

impl FabricCounts {
    pub(super) fn new(since: Nanos, sample_every: Nanos, hosts: HostCounters) -> Self {
        Self { since, sample_every, hosts, ..Self::default() }
    }
}
