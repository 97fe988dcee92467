//! Cutoffs checker: a host announces valid cutoffs, and uses only cutoffs that their owner has
//! announced to it.
//!
//! Requirements PRIO-6, PRIO-8, PRIO-11, PRIO-14. DATA repeats the version of the cutoffs that its
//! sender has stored, 0 without cutoffs. Valid cutoffs, whether configured or derived from the
//! observed workload, start with levels for scheduled packets (0), continue with a level that takes
//! messages of any length, do not rise from there on, and use no more levels than the host is
//! configured for. A host with one level may announce the longest message that starts unscheduled
//! instead (PRIO-16).

use std::collections::HashSet;

use apus_proto::{Config, Profile};
use apus_wire::{Body, PRIORITIES};
use foldhash::fast::FixedState;

use super::contract::Checker;
use crate::directory::Directory;
use crate::observation::{HostEvent, Observation, WirePacket};
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;

/// All announcements: owner, recipient, version.
#[derive(Debug, Default)]
pub(crate) struct CutoffsChecker {
    announced: HashSet<(HostId, HostId, u16), FixedState>,
}

impl CutoffsChecker {
    fn sent(
        &mut self,
        directory: &Directory,
        host: HostId,
        wire: &WirePacket<'_>,
    ) -> Result<(), Violation> {
        match &wire.packet.body {
            Body::Cutoffs(cutoffs) => {
                self.announced.insert((host, wire.peer, cutoffs.version));
                let levels = directory.scenario.config.num_priorities() as usize;
                let lowest = longest_unscheduled(&directory.scenario.config);
                let is_ours = !directory.runs_module(host) && directory.scenario.is_honest(host);
                let is_valid = !is_ours || is_valid(&cutoffs.unscheduled, levels, lowest);
                Violation::unless(is_valid, ViolationKind::Permission, wire.call, || {
                    (
                        format!(
                            "host {host} announces cutoffs for {levels} levels that do not rise, the \
                             lowest for messages up to {lowest:?} bytes (PRIO-8, PRIO-11, PRIO-16)"
                        ),
                        format!("{:?}", cutoffs.unscheduled),
                    )
                })
            }
            // Announcements of modules and of a hostile host under its real address are not
            // recorded.
            Body::Data(data, _)
                if data.cutoff_version != 0
                    && !directory.runs_module(wire.peer)
                    && directory.scenario.is_honest(wire.peer) =>
            {
                let version = data.cutoff_version;
                let is_known = self.announced.contains(&(wire.peer, host, version));
                Violation::unless(is_known, ViolationKind::Permission, wire.call, || {
                    (
                        format!(
                            "host {host} uses cutoffs that host {} has announced (PRIO-14)",
                            wire.peer
                        ),
                        format!("version {version}, which it has not"),
                    )
                })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the length of the longest message that starts unscheduled, `None` if all do (PRIO-16).
fn longest_unscheduled(config: &Config) -> Option<u32> {
    let informs = config.profile() == Profile::Udp && config.informed_incoming() > 0;
    let begins = config.num_priorities() == 1 && informs && config.cutoffs_interval_usecs() > 0;
    begins.then(|| config.informed_incoming().div_ceil(12) as u32)
}

/// Returns whether a host with this number of levels, whose lowest level takes messages up to
/// `lowest` bytes, may announce such cutoffs.
fn is_valid(table: &[u32; PRIORITIES], levels: usize, lowest: Option<u32>) -> bool {
    let (used, unused) = table.split_at(levels);
    let scheduled = used.iter().take_while(|cutoff| **cutoff == 0).count();
    let unscheduled = &used[scheduled..];
    // In the kernel profile lengths are signed (PRIO-6).
    let no_limit = |cutoff: u32| cutoff >= i32::MAX as u32;
    let takes = |cutoff| lowest.map_or_else(|| no_limit(cutoff), |lowest| cutoff == lowest);
    unscheduled.first().is_some_and(|cutoff| takes(*cutoff))
        && unscheduled.windows(2).all(|pair| pair[0] >= pair[1] && pair[1] > 0)
        && unused.iter().all(|cutoff| *cutoff == 0)
}

impl Checker for CutoffsChecker {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        match &observation.event {
            HostEvent::Sent(wire) => self.sent(directory, observation.host, wire),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_cutoffs_do_not_rise_and_leave_unused_levels_out() {
        const MAX: u32 = u32::MAX;
        for (table, levels) in [
            ([MAX, 0, 0, 0, 0, 0, 0, 0], 1),
            ([MAX, 200, 0, 0, 0, 0, 0, 0], 2),
            ([i32::MAX as u32, 200, 0, 0, 0, 0, 0, 0], 2),
            ([0, 0, 0, 0, MAX, 15_000, 15_000, 1], 8),
            ([0, 0, 0, 0, 0, 0, 0, MAX], 8),
        ] {
            assert!(is_valid(&table, levels, None), "{table:?}");
        }
        for (table, levels) in [
            ([MAX, 200, 0, 0, 0, 0, 0, 0], 1),
            ([0, 200, 0, 0, 0, 0, 0, 0], 2),
            ([MAX, 200, 0, 0, 0, 0, 0, 0], 3),
            ([0, 0, 0, 0, MAX, 2_800, 15_000, 1], 8),
            ([0; 8], 8),
        ] {
            assert!(!is_valid(&table, levels, None), "{table:?}");
        }
        let one = [1_500, 0, 0, 0, 0, 0, 0, 0];
        assert!(is_valid(&one, 1, Some(1_500)) && !is_valid(&one, 1, None));
        assert!(!is_valid(&[MAX, 0, 0, 0, 0, 0, 0, 0], 1, Some(1_500)));
    }
}
