//! State of a connection for observers.

use apus_workload::time::Nanos;

/// Counters of the sending half of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with payload, including retransmissions and probes.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions of the window because of marks, or of a loss that a probe repaired.
    pub reductions: u64,
    /// Losses detected by later arrivals.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reports of duplicate segments.
    pub duplicates: u64,
    /// Recoveries whose reduction was undone because no segment had been lost.
    pub undone: u64,
}

/// Current state of the sending half of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Congestion window, in segments.
    pub window: u32,
    /// Slow start threshold in segments; `None` without congestion so far.
    pub threshold: Option<u32>,
    /// Estimated fraction of marked segments, in 1024ths.
    pub alpha: u32,
    /// Smoothed round-trip time; 0 before the first measurement.
    pub round_trip: Nanos,
    /// Bytes of messages that are not acknowledged, sent or not.
    pub unacknowledged: u64,
    /// Its counters.
    pub counters: Counters,
}
