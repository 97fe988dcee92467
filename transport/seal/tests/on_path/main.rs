//! Two endpoints and a host on the path between them that records, drops, delays, reorders,
//! repeats, modifies and injects packets, and obtains old keys. Uses the stub cipher so that a run
//! has many packets; everything follows from the seed.
//!
//! Promises of the specification checked in each step:
//!
//! - each opened packet was sealed by the peer and is opened once (SEAL-5);
//! - no number is used twice with a key (SEAL-3);
//! - a leaked key opens and forges no packet of a later association (SEAL-4, SEAL-16);
//! - once the host stops interfering, both ends communicate again.
//!
//! `APUS_SEAL_SEEDS=1000` runs more seeds; the message of a failure contains the seed.

mod checker;
mod host;
mod world;

use world::World;

#[test]
fn a_host_on_the_path_stops_packets_and_nothing_else() {
    let seeds = std::env::var("APUS_SEAL_SEEDS").ok().and_then(|text| text.parse().ok());
    let (mut packets, mut handshakes, mut rekeys, mut refused) = (0, 0, 0, 0);
    for seed in 0..seeds.unwrap_or(40) {
        let mut world = World::new(seed);
        world.run(1_500);
        let totals = world.heal();
        packets += totals.packets;
        handshakes += totals.handshakes;
        rekeys += totals.rekeys;
        refused += totals.refused;
    }
    eprintln!("{packets} packets, {handshakes} handshakes, {rekeys} new keys, {refused} refused");
    assert!(packets > 10_000 && handshakes > 100 && rekeys > 100 && refused > 1_000);
}
