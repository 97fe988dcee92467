//! Finds the first of these seeds that breaks a promise: `seeds FROM COUNT`. A small `apus sim check`, so that little
//! is recompiled when the core changes; for the mutations.
//!
//! Prints `KIND SEED NUMBER` and exits with the status of the kind. NUMBER is the number of seeds that were run.

use std::process::ExitCode;
use std::thread::available_parallelism;

use apus_swarm::{PeerModel, Swarm};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let &[from, count] = numbers.as_slice() else {
        eprintln!("usage: seeds FROM COUNT");
        return ExitCode::from(2);
    };
    let jobs = available_parallelism().expect("the number of cores");
    let end = from + count;
    for first in (from..end).step_by(jobs.get()) {
        let swarm = Swarm {
            seeds: first..end.min(first + jobs.get() as u64),
            peers: PeerModel::Random,
            jobs,
        };
        if let Some(failure) = swarm.run(|_, _| {}).failures.first() {
            println!("{} {} {}", failure.violation.kind, failure.seed, failure.seed - from + 1);
            eprintln!("{failure}");
            return ExitCode::from(failure.violation.kind.exit_status());
        }
    }
    println!("none - {count}");
    ExitCode::SUCCESS
}
