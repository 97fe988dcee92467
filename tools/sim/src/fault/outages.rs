//! Who is cut off, paused or down, and when?

use crate::message::HostId;
use apus_workload::time::Nanos;

/// Everything that concerns whole hosts. Outages of the same host may overlap: the host is down if one of
/// them says so, and otherwise paused if one says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// Hosts that cannot reach the others.
    pub partitions: Vec<Partition>,
    /// Hosts that do nothing for a while.
    pub pauses: Vec<Pause>,
    /// Hosts that lose everything they knew.
    pub crashes: Vec<Crash>,
}

/// Packets between `side` and everybody else are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Hosts on one side.
    pub side: Vec<HostId>,
    /// When it begins.
    pub from: Nanos,
    /// When it has ended.
    pub until: Nanos,
}

/// A host does nothing, and then everything at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Which one.
    pub host: HostId,
    /// When it falls asleep.
    pub from: Nanos,
    /// When it wakes up.
    pub until: Nanos,
}

/// A host dies, and comes back as one that knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Which one.
    pub host: HostId,
    /// When it dies.
    pub at: Nanos,
    /// When it comes back; [`Nanos::MAX`]: never.
    pub until: Nanos,
}

impl Partition {
    /// Whether packets between two hosts are dropped now.
    pub(super) fn cuts(&self, now: Nanos, from: HostId, to: HostId) -> bool {
        (self.from..self.until).contains(&now)
            && self.side.contains(&from) != self.side.contains(&to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_cuts_between_its_sides_while_it_lasts() {
        let partition = Partition { side: vec![0, 1], from: 100, until: 200 };
        assert!(partition.cuts(100, 0, 2) && partition.cuts(199, 2, 1));
        assert!(!partition.cuts(150, 0, 1) && !partition.cuts(150, 2, 3));
        assert!(!partition.cuts(99, 0, 2) && !partition.cuts(200, 0, 2));
    }
}
