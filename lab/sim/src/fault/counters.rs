//! Counters of faults.

/// Packets affected by faults. One packet may count several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lost independently.
    pub lost: u64,
    /// Lost in bursts.
    pub lost_in_bursts: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Delayed so that later packets overtake them.
    pub reordered: u64,
    /// Delayed by a delay spike.
    pub held_up: u64,
    /// Copied, with the copy delivered much later.
    pub very_late: u64,
    /// Corrupted and dropped.
    pub caught: u64,
    /// Corrupted and delivered.
    pub corrupted: u64,
    /// Dropped between the sides of a partition.
    pub cut_off: u64,
    /// Dropped because their host was down.
    pub at_dead_host: u64,
    /// Held because their host was paused.
    pub at_paused_host: u64,
}
