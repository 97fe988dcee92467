//! Random host outages, and the end of all faults.

use apus_proto::{Config, Profile};

use super::random::SeededRng;
use apus_sim::fabric::Settings;
use apus_sim::fault::{Crash, Outages, Partition, Pause};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos};

/// Generates the outages of a run whose last call is at `last`. Also returns the end of all faults.
pub(super) fn generate(
    rng: &mut SeededRng,
    fabric: &Settings,
    config: &Config,
    last: Nanos,
) -> (Outages, Nanos) {
    let hosts = fabric.topology.shape.hosts();
    let mut outages = Outages::default();
    let longest = 2 * config.timeout_usecs() * MICROSECOND;
    let mut end = last;
    let mut span = |rng: &mut SeededRng| {
        let from = rng.within(0..=last);
        let until = from + rng.scale(10 * MICROSECOND, longest);
        end = end.max(until);
        (from, until)
    };
    if rng.percent(15) {
        for _ in 0..rng.within(1..=3) {
            let (from, until) = span(rng);
            let side = (0..hosts).filter(|_| rng.percent(40)).collect();
            outages.partitions.push(Partition { side, from, until });
        }
    }
    if rng.percent(15) {
        for _ in 0..rng.within(1..=4) {
            let (from, until) = span(rng);
            outages.pauses.push(Pause { host: rng.within(0..hosts), from, until });
        }
    }
    // A restarted server has lost its record of executed requests; without sessions its clients do
    // not notice (AMO-7).
    if rng.percent(20) && config.profile() == Profile::Udp {
        for _ in 0..rng.within(1..=4) {
            let (at, until) = span(rng);
            outages.crashes.push(Crash { host: rng.within(0..hosts), at, until });
        }
    }
    if rng.percent(5) && hosts > 2 {
        let dead: HostId = rng.within(0..hosts);
        outages.crashes.push(Crash { host: dead, at: rng.within(0..=last), until: Nanos::MAX });
    }
    (outages, end + rng.within(0..=5 * MILLISECOND))
}
