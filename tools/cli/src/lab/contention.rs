//! What does one lock for all local sockets cost?

use apus_labs::contention::{self, Options, Tasks};
use apus_testbed::process::Spawner;
use clap::Args;

use crate::failure::Failure;
use crate::files::Files;
use crate::output;

/// What does one lock for all local sockets cost?
///
/// For years FreeBSD took one lock for every message over any local socket: 96 processes, each with sockets of its
/// own, got 1.69 million messages a second through, fewer than six did; with a lock for each socket it was 70.7 million.
/// Here each worker has a pair of its own, writes one byte and reads it itself, as in will-it-scale's unix1:
/// `global-lock` (the pairs of apus under one lock that each send and each receive takes), `fine-grained` (the pairs as
/// they are, without a lock that two share), and `unix` (a socket pair of the kernel), with one worker and more. It tells
/// operations a second, how long locks are waited for, and whether the difference is more than chance (Student's t
/// at 95 %, as ministat has it). What to expect with more workers than there are cores is a model, of what the lock costs
/// here, and is called so in tables, JSON and charts. Rows are of processes, with `threads` behind the name those of
/// threads; with `--as threads` all are of threads.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus lab contention
  apus lab contention --workers 96 --as processes --runs 10 --html contention.html
  apus lab contention --as threads --seconds 1 --json")]
pub(crate) struct Arguments {
    /// The largest number of workers, 1 to 1024: up to 8 each number is measured, and powers of two beyond; by
    /// default as many as there are cores
    #[arg(long, value_name = "WORKERS", allow_negative_numbers = true)]
    workers: Option<usize>,
    /// What workers are: `processes`, `threads` of one process, or `both` in turn
    #[arg(long = "as", value_name = "WHAT", default_value_t = Options::default().tasks)]
    tasks: Tasks,
    /// Seconds that count, for each number of workers of each contender in each run: 0.01 to 60. Up to 32 times as
    /// long where no operation ended in them because other programs had the cores
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().seconds, allow_negative_numbers = true)]
    seconds: f64,
    /// How often everything is repeated, 1 to 1000; reported are the median over the runs, the least and the
    /// greatest. Ten say more about a small difference than five
    #[arg(long, value_name = "RUNS", default_value_t = Options::default().runs, allow_negative_numbers = true)]
    runs: usize,
    /// Where chance begins: the same seed draws the same order of contenders and numbers of workers
    #[arg(long, value_name = "NUMBER", default_value_t = Options::default().seed, allow_negative_numbers = true)]
    seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

/// Measures, prints the result and writes its files.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { workers, tasks, seconds, runs, seed, json, files } = arguments;
    let options = Options {
        workers: workers.unwrap_or_else(|| Options::default().workers),
        tasks: *tasks,
        seconds: *seconds,
        runs: *runs,
        seed: *seed,
    };
    let files = files.open()?;
    let findings = contention::run(&options, &Spawner::this_program()?)?;
    files.fill(|| findings.html(), || findings.svg_files())?;
    if *json { output::line(&findings.outcome.json()) } else { output::write(findings.to_string()) }
}
