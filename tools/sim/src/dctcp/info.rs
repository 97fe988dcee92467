//! What can be seen of a connection from outside?

use apus_workload::time::Nanos;

/// What the sending half of a connection has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with payload, retransmissions and probes included.
    pub segments: u64,
    /// Segments that were sent again because they were taken for lost.
    pub retransmissions: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Times that marks (or a loss that a probe repaired) reduced the window.
    pub reductions: u64,
    /// Times that a loss was found by what arrived after it.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reports of segments that arrived twice.
    pub duplicates: u64,
    /// Recoveries whose reduction was taken back, as nothing had been lost.
    pub undone: u64,
}

/// The sending half of a connection at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// Congestion window, in segments.
    pub window: u32,
    /// Slow start threshold in segments, once there was congestion.
    pub threshold: Option<u32>,
    /// Estimated fraction of marked segments, in 1024ths.
    pub alpha: u32,
    /// Smoothed round-trip time; 0 before it has been measured.
    pub round_trip: Nanos,
    /// Bytes of messages that are not acknowledged, sent or not.
    pub unacknowledged: u64,
    /// What it has done.
    pub counters: Counters,
}
