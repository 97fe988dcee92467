//! Seeds: random worlds with the product's cores.

use apus_fs_sim::{Totals, check_seed};

/// FSCLIENT-2 to FSCLIENT-5, FSSERVE-1 to FSSERVE-11, STORE-1 to STORE-3 in worlds with crashes,
/// partitions, pauses and clocks that run at different rates. `FS_SIM_SEEDS=from..to` runs others.
#[test]
fn promises_are_kept() {
    let seeds = std::env::var("FS_SIM_SEEDS").unwrap_or_else(|_| "0..60".to_owned());
    let (from, to) = seeds.split_once("..").expect("from..to");
    let mut totals = Totals::default();
    let mut failures = Vec::new();
    let range = from.parse::<u64>().expect("a number")..to.parse().expect("a number");
    for seed in range.clone() {
        match check_seed(seed) {
            Ok(run) => {
                totals.operations += run.operations;
                totals.hits += run.hits;
                totals.requests += run.requests;
                totals.callbacks += run.callbacks;
                totals.lost += run.lost;
                totals.crashes += run.crashes;
                totals.fenced += run.fenced;
                totals.interrupted += run.interrupted;
                totals.undecided += run.undecided;
                totals.milliseconds += run.milliseconds;
            }
            Err(failure) => failures.push(failure),
        }
    }
    println!("{totals:?}");
    for failure in &failures {
        println!("seed {}: {}", failure.scenario.seed, failure.violation);
    }
    if let Some(first) = failures.first() {
        panic!("{} of {range:?} seeds: {first}", failures.len());
    }
    assert!(totals.operations > 50 * (range.end - range.start), "little was done: {totals:?}");
}

/// FSWORLD-1.
#[test]
fn two_runs_of_a_seed_are_equal() {
    let run = || check_seed(1).map_err(|failure| failure.to_string());
    assert_eq!(run(), run());
}
