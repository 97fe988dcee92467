//! Finds the first of these seeds that breaks a promise:
//! `seeds FROM COUNT [JOBS] [--hostile | --kernel | --sealed | --divided]`, with one thread per
//! core unless JOBS is given. With `--hostile`, one host of each fabric attacks the others; with
//! `--kernel`, some hosts run the Linux module; with `--sealed`, packets are sealed and a host is
//! on the path; with `--divided`, hosts have endpoints with shards, or several processes. It runs
//! the same seeds as `apus-lab sim check`, but compiles far less when the core changes:
//! `mutations/run` builds it once per mutation.
//!
//! Prints `KIND SEED NUMBER` and exits with the status of the kind. NUMBER is the number of seeds
//! run. Describes the violation on standard error.

use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;

use apus_swarm::{PeerModel, Swarm};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let peers = match words.last().map(String::as_str) {
        Some("--hostile") => PeerModel::Hostile,
        Some("--kernel") => PeerModel::Kernel,
        Some("--sealed") => PeerModel::Sealed,
        Some("--divided") => PeerModel::Divided,
        _ => PeerModel::Random,
    };
    words.truncate(words.len() - usize::from(peers != PeerModel::Random));
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let (from, count, jobs) = match numbers.as_deref() {
        Some(&[from, count]) => (from, count, available_parallelism().ok()),
        Some(&[from, count, jobs]) => (from, count, NonZero::new(jobs as usize)),
        _ => (0, 0, None),
    };
    let (Some(jobs), Some(end)) = (jobs, from.checked_add(count)) else {
        eprintln!("usage: seeds FROM COUNT [JOBS] [--hostile | --kernel | --sealed | --divided]");
        return ExitCode::from(2);
    };
    for first in (from..end).step_by(jobs.get()) {
        let swarm =
            Swarm { seeds: first..end.min(first + jobs.get() as u64), peers, files: false, jobs };
        if let Some(failure) = swarm.run(|_, _| {}).failures.first() {
            println!("{} {} {}", failure.violation.kind, failure.seed, failure.seed - from + 1);
            eprintln!("{failure}");
            return ExitCode::from(failure.violation.kind.exit_status());
        }
    }
    println!("none - {count}");
    ExitCode::SUCCESS
}
