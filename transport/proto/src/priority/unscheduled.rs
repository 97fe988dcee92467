//! The cutoffs that this endpoint announces to its senders.

use crate::config::Config;
use apus_wire::{Cutoffs, PRIORITIES};

/// The priorities that this endpoint announces for unscheduled packets to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnCutoffs {
    announced: Cutoffs,
    /// Levels below the lowest unscheduled one.
    scheduled_levels: u8,
}

/// Fraction of `informed_incoming` up to which messages start unscheduled (PRIO-16). Chosen by us,
/// from sweeps (docs/networks.md).
const LONGEST_PART: u64 = 12;

impl OwnCutoffs {
    /// The configured table, version 1. With fewer than eight levels its highest entries count
    /// (PRIO-11).
    pub(crate) fn configured(config: &Config) -> Self {
        let levels = config.num_priorities() as usize;
        let mut table = [0; PRIORITIES];
        table[..levels].copy_from_slice(&config.unsched_cutoffs()[PRIORITIES - levels..]);
        let announced = Cutoffs { unscheduled: table, version: 0 };
        let mut own = Self { announced, scheduled_levels: 0 };
        own.replace(table);
        if config.learns_one_level() {
            let longest = config.informed_incoming().div_ceil(LONGEST_PART);
            own.announced.unscheduled[0] = longest as u32;
        }
        own
    }

    /// The content of CUTOFFS packets.
    pub(crate) const fn announced(&self) -> &Cutoffs {
        &self.announced
    }

    /// Levels for scheduled packets; 0 if they share the lowest one.
    pub(crate) const fn scheduled_levels(&self) -> u8 {
        self.scheduled_levels
    }

    /// Takes another table, under the next version (0 is never used: it means "none yet").
    pub(crate) fn replace(&mut self, mut table: [u32; PRIORITIES]) {
        let lowest = table.iter().position(|cutoff| *cutoff > 0).unwrap_or(0);
        table[lowest] = u32::MAX;
        self.announced.unscheduled = table;
        self.scheduled_levels = lowest as u8;
        self.announce_again();
    }

    /// Announces the same table again, with the present room.
    pub(crate) fn announce_again(&mut self) {
        self.announced.version = self.announced.version.checked_add(1).unwrap_or(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(levels: u64) -> OwnCutoffs {
        OwnCutoffs::configured(&Config::builder().num_priorities(levels).build().unwrap())
    }

    /// Source: HM `homa_utils.c` `homa_init`.
    #[test]
    fn the_default_table_is_the_kernels() {
        let own = own(8);
        let table = [0, 0, 0, 0, u32::MAX, 15_000, 2_800, 200];
        assert_eq!(own.announced(), &Cutoffs { unscheduled: table, version: 1 });
        assert_eq!(own.scheduled_levels(), 4);
    }

    #[test]
    fn with_fewer_levels_the_highest_entries_count() {
        let tables = [1, 2, 5].map(|levels| own(levels).announced().unscheduled);
        let max = u32::MAX;
        assert_eq!(tables[0], [max, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(tables[1], [max, 200, 0, 0, 0, 0, 0, 0]);
        assert_eq!(tables[2], [0, max, 15_000, 2_800, 200, 0, 0, 0]);
        assert_eq!([1, 2, 5].map(|levels| own(levels).scheduled_levels()), [0, 0, 1]);
    }

    #[test]
    fn versions_skip_zero() {
        let mut own = own(8);
        own.announced.version = u16::MAX;
        own.replace([0, 0, 0, 0, 0, 0, 9, 5]);
        assert_eq!(own.announced().version, 1);
        assert_eq!(own.scheduled_levels(), 6);
    }
}
