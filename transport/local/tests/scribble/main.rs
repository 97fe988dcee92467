//! Inputs that the fuzzer found, and random inputs, do no harm.

mod body;
mod peer;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

#[test]
fn the_findings_of_the_fuzzer_still_hold() {
    replay::replay("local", body::run);
}

#[test]
fn random_steps_do_no_harm() {
    for seed in 0..500 {
        eprintln!("seed {seed}");
        let mut random = Pcg64::seed_from_u64(seed);
        let bytes: Vec<u8> = (0..random.random_range(1..3_000)).map(|_| random.random()).collect();
        body::run(&bytes);
    }
}
