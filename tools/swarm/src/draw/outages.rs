//! What goes wrong with hosts, and when is everything over?

use apus_proto::{Config, Profile};

use super::dice::Dice;
use apus_sim::fabric::Settings;
use apus_sim::fault::{Crash, Outages, Partition, Pause};
use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos};

/// Outages of a run whose last call is at `last`, and when its faults end.
pub(super) fn draw(
    dice: &mut Dice,
    fabric: &Settings,
    config: &Config,
    last: Nanos,
) -> (Outages, Nanos) {
    let hosts = fabric.topology.shape.hosts();
    let mut outages = Outages::default();
    let longest = 2 * config.timeout_usecs() * MICROSECOND;
    let mut end = last;
    let mut span = |dice: &mut Dice| {
        let from = dice.within(0..=last);
        let until = from + dice.scale(10 * MICROSECOND, longest);
        end = end.max(until);
        (from, until)
    };
    if dice.percent(15) {
        for _ in 0..dice.within(1..=3) {
            let (from, until) = span(dice);
            let side = (0..hosts).filter(|_| dice.percent(40)).collect();
            outages.partitions.push(Partition { side, from, until });
        }
    }
    if dice.percent(15) {
        for _ in 0..dice.within(1..=4) {
            let (from, until) = span(dice);
            outages.pauses.push(Pause { host: dice.within(0..hosts), from, until });
        }
    }
    // A server that comes back cannot know what it executed before; without sessions nobody does (AMO-7).
    if dice.percent(20) && config.profile() == Profile::Udp {
        for _ in 0..dice.within(1..=4) {
            let (at, until) = span(dice);
            outages.crashes.push(Crash { host: dice.within(0..hosts), at, until });
        }
    }
    if dice.percent(5) && hosts > 2 {
        let dead: HostId = dice.within(0..hosts);
        outages.crashes.push(Crash { host: dead, at: dice.within(0..=last), until: Nanos::MAX });
    }
    (outages, end + dice.within(0..=5 * MILLISECOND))
}
