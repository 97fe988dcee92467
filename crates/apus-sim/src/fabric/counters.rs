//! What has a fabric seen since its counters were reset?

use crate::time::Nanos;

/// How long queues were, over all ports of a kind. Bytes waiting, without the packet on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLength {
    /// Mean over time and ports.
    pub mean: f64,
    /// The longest of any port.
    pub max: u64,
}

/// What a fabric has seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Time over which this was counted.
    pub time: Nanos,
    /// Queues of TORs towards spines.
    pub tor_to_spine: QueueLength,
    /// Queues of spines towards TORs.
    pub spine_to_tor: QueueLength,
    /// Queues of TORs towards hosts.
    pub tor_to_host: QueueLength,
    /// Share of the time for which the links to hosts were busy, on average.
    pub utilisation: f64,
    /// Share of the time for which the links to hosts were idle although their hosts withheld permission
    /// from senders, on average (published numbers, figure 16).
    pub wasted: f64,
    /// Bytes on the links to hosts by priority level.
    pub level_bytes: [u64; 8],
    /// Packets with payload that have reached their hosts.
    pub data_packets: u64,
    /// Packets of any kind that have reached their hosts.
    pub packets: u64,
    /// Packets dropped by switches for lack of room.
    pub dropped: u64,
    /// Packets marked by switches.
    pub marked: u64,
}
