//! What has gone wrong so far?

/// Packets that something has happened to. One packet may count several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lost, each by itself.
    pub lost: u64,
    /// Lost in bursts.
    pub lost_in_bursts: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Overtaken.
    pub reordered: u64,
    /// Held up by a delay spike.
    pub held_up: u64,
    /// Of which a copy came much later.
    pub very_late: u64,
    /// Corrupted, and dropped for it.
    pub caught: u64,
    /// Corrupted, and delivered.
    pub corrupted: u64,
    /// Dropped between two sides of a partition.
    pub cut_off: u64,
    /// Dropped because their host was down.
    pub at_dead_host: u64,
    /// Kept back because their host was paused.
    pub at_paused_host: u64,
}
