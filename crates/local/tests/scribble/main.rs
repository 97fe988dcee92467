//! Inputs that the fuzzer found, and random inputs, do no harm.

mod body;
mod peer;

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

#[test]
fn the_findings_of_the_fuzzer_still_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/local");
    if !folder.exists() {
        eprintln!("SKIPPED: no folder {}: this is not the repository", folder.display());
        return;
    }
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        body::run(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} holds no inputs", folder.display());
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
