//! The priorities that a peer requests for unscheduled packets.

use crate::extent::extent;
use apus_wire::{Cutoffs, PRIORITIES, Profile};

/// The cutoffs that a peer announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerCutoffs {
    table: [u32; PRIORITIES],
    /// Version that DATA packets to it repeat; 0 before the first announcement (Rules for peers,
    /// item 8).
    pub(crate) version: u16,
    /// Length of the longest message that starts unscheduled (PRIO-16).
    pub(crate) longest_unscheduled: u32,
}

impl PeerCutoffs {
    /// Before the peer has announced anything, all messages use the level below `highest` (HM
    /// `homa_peer.c` `homa_peer_alloc`).
    pub(crate) fn unknown(highest: u8) -> Self {
        let mut table = [0; PRIORITIES];
        table[usize::from(highest.saturating_sub(1))] = u32::MAX;
        Self { table, version: 0, longest_unscheduled: u32::MAX }
    }

    /// Applies an announcement. Level 0 has no limit, whatever is announced (HM `homa_incoming.c`
    /// `homa_cutoffs_pkt`, PRIO-7). In the udp profile, messages longer than its announced limit
    /// start scheduled; a limit of 0 leaves the level to scheduled packets.
    pub(crate) fn update(&mut self, cutoffs: &Cutoffs, profile: Profile) {
        self.table = cutoffs.unscheduled;
        let longest = std::mem::replace(&mut self.table[0], u32::MAX);
        let is_said = longest > 0 && profile == Profile::Udp;
        self.longest_unscheduled = if is_said { longest } else { u32::MAX };
        self.version = cutoffs.version;
    }

    /// PRIO-3: level for the unscheduled packets of a message of `length` bytes: the highest one,
    /// up to `highest`, that takes messages of this length. A cutoff of 0 leaves a level to
    /// scheduled packets, and takes no empty message either.
    pub(crate) fn level(&self, length: u32, highest: u8) -> u8 {
        let length = extent(length);
        (0..=highest).rev().find(|level| self.table[usize::from(*level)] >= length).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: HM `homa_peer.c` `homa_peer_alloc`, `homa_incoming.c` `homa_cutoffs_pkt`.
    #[test]
    fn levels_follow_the_announced_table() {
        let mut cutoffs = PeerCutoffs::unknown(7);
        assert_eq!((cutoffs.level(1, 7), cutoffs.level(1 << 26, 7), cutoffs.version), (6, 6, 0));
        let unscheduled = [0, 0, 0, 0, 1_000_000, 15_000, 2_800, 200];
        cutoffs.update(&Cutoffs { unscheduled, version: 3 }, Profile::Udp);
        let levels = [1, 200, 201, 2_800, 15_001, 1_000_001].map(|len| cutoffs.level(len, 7));
        assert_eq!(levels, [7, 7, 6, 6, 4, 0]);
        assert_eq!(cutoffs.version, 3);
        assert_eq!(PeerCutoffs::unknown(0).level(5, 0), 0, "one level only");
        assert_eq!(cutoffs.level(1, 3), 0, "fewer levels here than there");
        for cutoffs in [PeerCutoffs::unknown(7), PeerCutoffs::unknown(0), cutoffs] {
            for highest in [0, 3, 7] {
                assert_eq!(cutoffs.level(0, highest), cutoffs.level(1, highest), "an empty one");
            }
        }
    }
}
