//! Two endpoints and a host on the path between them, which records, drops, delays, reorders, repeats, changes and injects
//! packets, and learns old keys. With the stub cipher, so that a run makes many packets; everything follows from the seed.
//!
//! Checked in each step, as promises of the specification:
//!
//! - what is opened was sealed by the peer, and is opened once (SEAL-5);
//! - no number is used twice with a key (SEAL-3);
//! - a key that the host has learnt opens and forges nothing of later associations, and nothing that its holder did not also have (SEAL-4, SEAL-16);
//! - when the host leaves the packets alone, both ends talk again.
//!
//! `APUS_SEAL_SEEDS=1000` runs more seeds than the usual few; the seed of a failure is in its message.

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
