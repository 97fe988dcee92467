//! Random processors of hosts.

use super::random::SeededRng;
use crate::scenario::{FRAMING, Processors};
use apus_sim::fabric::Settings;
use apus_sim::processor::{Costs, Processor, Stall};
use apus_workload::time::{MILLISECOND, Nanos, Rate};

/// Generates processors for some runs, with a quarter to twice the rate of the links; `last` is the
/// time of the last call. Also returns the end of the last stall.
pub(super) fn generate(
    rng: &mut SeededRng,
    fabric: &Settings,
    packet_limit: u32,
    last: Nanos,
) -> (Option<Processors>, Nanos) {
    if !rng.percent(15) {
        return (None, 0);
    }
    let hosts = fabric.topology.shape.hosts();
    let link = fabric.topology.host_rate.mbps();
    let rate = Rate::from_mbps(rng.within(link / 4..=2 * link)).expect("as fast as a link");
    let costs = Costs::at_rate(rate, wire_bytes(packet_limit));
    let socket_buffer = rng.scale(20 * u64::from(packet_limit), 4_000_000);
    let mut stalls = Vec::new();
    if rng.percent(40) {
        let mut at = 0;
        for _ in 0..rng.within(1..=3) {
            let from = at + rng.within(0..=last);
            let until = from + rng.within(50..=500) * MILLISECOND;
            stalls.push((rng.within(0..hosts), Stall { from, until }));
            at = until;
        }
    }
    let end = stalls.last().map_or(0, |(_, stall)| stall.until);
    (Some(Processors { processor: Processor { costs, socket_buffer }, stalls }), end)
}

/// Returns the bytes on the wire of the longest packet, whose length excludes IP and UDP headers.
pub(super) const fn wire_bytes(packet_limit: u32) -> u32 {
    packet_limit + FRAMING as u32
}
