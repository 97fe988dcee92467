//! Ranks, keys and links of messages in the schedule.

/// Picoseconds since the start of the run, or the transmission time of a message on a host's link.
pub(super) type Picos = u64;

/// Key of a message in the slab.
pub(super) type Key = usize;

/// Index of a link: uplinks of all hosts first, then downlinks.
pub(super) type LinkIndex = usize;

/// Precedence of a message: the smaller rank is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Remaining transmission time.
    pub(super) remaining: Picos,
    /// Number of messages that arrived before it.
    pub(super) age: u64,
}
