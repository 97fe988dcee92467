//! Outages of hosts: partitions, pauses and crashes.

use crate::message::HostId;
use apus_workload::time::Nanos;

/// All outages. Outages of the same host may overlap: the host is down if one of them is a crash,
/// and otherwise paused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// Partitions of the network.
    pub partitions: Vec<Partition>,
    /// Hosts that are suspended for a while.
    pub pauses: Vec<Pause>,
    /// Hosts that lose their state.
    pub crashes: Vec<Crash>,
}

/// Drops the packets between `side` and all other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Hosts on one side.
    pub side: Vec<HostId>,
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
}

/// Suspends a host, which afterwards processes everything at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The host.
    pub host: HostId,
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
}

/// Crashes a host, which restarts without any state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The host.
    pub host: HostId,
    /// Time of the crash.
    pub at: Nanos,
    /// Time of the restart; [`Nanos::MAX`] for no restart.
    pub until: Nanos,
}

impl Partition {
    /// Returns whether packets between two hosts are dropped now.
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
