//! What does a seed decide, and how likely is what?
//!
//! Each file draws one thing, from a stream of its own. Ranges are those in which the protocol is meant to
//! be used, and their ends: what nobody would configure finds nothing that anybody would meet.

mod config;
mod dice;
mod fabric;
mod faults;
mod kernel;
mod load;
mod outages;
mod sizes;

use super::scenario::{Peers, Scenario};
use dice::Dice;

/// What a seed decides.
pub(super) fn scenario(seed: u64, peers: Peers) -> Scenario {
    let stream = |purpose| Dice::new(seed, purpose);
    let (fabric, packet_limit) = fabric::draw(&mut stream(1), seed);
    let kernel_hosts = kernel::draw(&mut stream(8), &fabric, peers);
    let config = config::draw(&mut stream(2), &fabric, !kernel_hosts.is_empty());
    let sizes = sizes::draw(&mut stream(3), &config, packet_limit);
    let mut calls = load::draw(&mut stream(4), &fabric, &config, &sizes, packet_limit);
    let config = config::patient(&config, &fabric, &mut calls);
    kernel::bound(&mut calls, &kernel_hosts);
    let faults = faults::draw(&mut stream(5), &config);
    let last = calls.last().map_or(0, |call| call.at);
    let (mut outages, heal_at) = outages::draw(&mut stream(6), &fabric, &config, last);
    if !kernel_hosts.is_empty() {
        // The module asks a dead client for its acks every millisecond, for ever (row K-3): no other packet would
        // matter any more.
        outages.crashes.clear();
    }
    let mut others = stream(7);
    Scenario {
        seed,
        config,
        fabric,
        kernel_hosts,
        packet_limit,
        knows_rate: others.percent(80),
        takes_late: others.percent(20),
        calls,
        sizes: sizes.describe(),
        faults,
        outages,
        heal_at,
    }
}
