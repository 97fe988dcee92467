//! Random divisions of hosts: endpoints with shards, and several processes.

use super::random::SeededRng;
use crate::call::PlannedCall;
use crate::ends::{Division, Ends};
use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// Percentage of fabrics whose hosts are divided.
const DIVIDED_PERCENT: u32 = 15;

/// Generates the division of hosts; most are not divided.
pub(super) fn generate(rng: &mut SeededRng) -> Division {
    if rng.percent(DIVIDED_PERCENT) { divided(rng) } else { Division::Whole }
}

/// Generates a division into shards or processes.
pub(super) fn divided(rng: &mut SeededRng) -> Division {
    let number = rng.within(2..=4);
    if rng.percent(50) { Division::Shards(number) } else { Division::Processes(number) }
}

/// Assigns the calls to ends of the hosts.
pub(super) fn divide(rng: &mut SeededRng, ends: Ends, calls: &mut [PlannedCall]) {
    for call in calls {
        let callers: Vec<HostId> = ends.callers_on(call.from).collect();
        call.from = rng.one_of(&callers);
        call.to = ends.server_on(call.to, call.from, rng.within(0..u32::MAX));
    }
}

/// Generates the restarts of single processes whose hosts keep running.
pub(super) fn restarts(rng: &mut SeededRng, ends: Ends, last: Nanos) -> Vec<(Nanos, HostId)> {
    let mut restarts = Vec::new();
    if rng.percent(40) {
        for _ in 0..rng.within(1..=4) {
            restarts.push((rng.within(0..=last), rng.within(0..ends.count())));
        }
    }
    restarts.sort_unstable();
    restarts
}
