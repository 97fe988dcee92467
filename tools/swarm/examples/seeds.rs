//! Which of these seeds finds something first? `seeds FROM COUNT`: what `apus sim check` does, without the rest
//! of the command line, so that little is compiled anew when the core has changed; for the mutations.
//!
//! Prints `KIND SEED NUMBER` and exits with the kind's status; NUMBER seeds were run up to it.

use std::process::ExitCode;
use std::thread::available_parallelism;

use apus_swarm::{Peers, Swarm};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let &[from, count] = numbers.as_slice() else {
        eprintln!("usage: seeds FROM COUNT");
        return ExitCode::from(2);
    };
    let jobs = available_parallelism().expect("the number of cores");
    let end = from + count;
    for first in (from..end).step_by(jobs.get()) {
        let swarm =
            Swarm { seeds: first..end.min(first + jobs.get() as u64), peers: Peers::Drawn, jobs };
        if let Some(finding) = swarm.run(|_, _| {}).findings.first() {
            println!("{} {} {}", finding.violation.kind, finding.seed, finding.seed - from + 1);
            eprintln!("{finding}");
            return ExitCode::from(finding.violation.kind.exit_status());
        }
    }
    println!("none - {count}");
    ExitCode::SUCCESS
}
