//! Hostile packets in large numbers: the fuzzer's world, fed by random numbers instead of a fuzzer.
//!
//! Needs no nightly toolchain. Four of five steps are packets made of fields, the others are the
//! remaining operations. The environment variable `APUS_HOSTILE_PACKETS` sets the number of
//! packets:
//!
//! ```sh
//! APUS_HOSTILE_PACKETS=10000000 cargo test --release -p apus-proto --test network flood -- --nocapture
//! ```

use crate::handle_packet::{Forged, MAX_STEPS, Step, World};
use arbitrary::{Arbitrary, Unstructured};
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// Packets of an ordinary test run.
const PACKETS: u64 = 50_000;
/// Bytes that make a step: more than the longest takes, except for one of raw bytes.
const STEP_BYTES: usize = 128;

#[test]
fn a_flood_of_hostile_packets_breaks_nothing() {
    let most = std::env::var("APUS_HOSTILE_PACKETS").map_or(PACKETS, |text| text.parse().unwrap());
    let (mut packets, mut worlds) = (0, 0);
    while packets < most {
        packets += world(worlds);
        worlds += 1;
    }
    println!("{packets} packets in {worlds} worlds");
}

/// Runs one world, and returns the number of packets that its endpoint has received.
fn world(seed: u64) -> u64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut world = World::new(random.random());
    for _ in 0..MAX_STEPS {
        let mut bytes = [0; STEP_BYTES];
        random.fill_bytes(&mut bytes);
        let mut input = Unstructured::new(&bytes);
        let step = if random.random_range(0..5) < 4 {
            Forged::arbitrary(&mut input).map(Step::Packet)
        } else {
            Step::arbitrary(&mut input)
        };
        world.step(step.expect("there are enough bytes"));
        world.check();
    }
    world.come_to_rest();
    world.delivered
}
