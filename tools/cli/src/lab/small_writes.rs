//! What does a short message cost that is written in two pieces?

use std::env;

use apus::PollMode;
use apus_labs::small_writes::{self, Options};
use clap::Args;

use crate::failure::Failure;
use crate::files::Files;
use crate::output;

/// What does a short message cost that is written in two pieces?
///
/// A command of 64 bytes and its echo, one at a time, over TCP on the loopback interface: `tcp whole` writes it in one send,
/// `tcp split` as 4 bytes and 60, as programs do that send a length first. In `receive split` both sides read 4 bytes and
/// then 60, in `both split` it is written so, too. Split commands take thousands of times as long, since Nagle's algorithm
/// in the client and the delayed ACK in the server wait for each other; in 2008 that took weeks to find. The cures are
/// beside it: `+nodelay` (TCP_NODELAY), `+more` (MSG_MORE), `+cork` (TCP_CORK), `+quickack` (TCP_QUICKACK at
/// the server), and `gather` (sendmsg with two slices); and `apus` over UDP with the message given whole, as two slices
/// (`apus split`), and taken in pieces.
///
/// Times are taken first. Then each variant runs once more in a network namespace of its own, where its packets are read:
/// how many segments there were, and who waited for whose ACK for how long. Needs root, or user namespaces, and iproute2
/// for that; where it is not possible the result says so, and tells what the kernel has counted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus lab small-writes
  apus lab small-writes --html small-writes.html
  apus lab small-writes --only 'tcp whole,tcp split,apus whole,apus split' --poll block --json")]
pub(crate) struct Arguments {
    /// Exchanges of each variant in each run, 10 to 10000000; fewer where they take longer than --seconds. Times are told
    /// for a thousand, however many there were
    #[arg(long, value_name = "EXCHANGES", default_value_t = Options::default().exchanges, allow_negative_numbers = true)]
    exchanges: u64,
    /// Seconds for each variant in each run at most: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().seconds, allow_negative_numbers = true)]
    seconds: f64,
    /// How often everything is repeated, 1 to 1000; reported are the median over the runs, the least and the
    /// greatest
    #[arg(long, value_name = "RUNS", default_value_t = Options::default().runs, allow_negative_numbers = true)]
    runs: usize,
    /// Where chance begins: the same seed draws the same commands, and the same order of variants
    #[arg(long, value_name = "NUMBER", default_value_t = Options::default().seed, allow_negative_numbers = true)]
    seed: u64,
    /// How to wait for what comes: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for so long and then sleep
    /// (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = Options::default().poll)]
    poll: PollMode,
    /// Only these variants, by the names of their rows, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

/// Measures, prints the result and writes its files.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { exchanges, seconds, runs, seed, poll, only, json, files } = arguments;
    let options = Options {
        exchanges: *exchanges,
        seconds: *seconds,
        runs: *runs,
        seed: *seed,
        poll: *poll,
        only: only.clone(),
    };
    let files = files.open()?;
    let program = env::current_exe().map_err(|error| Failure::of("find this program", &error))?;
    let findings = small_writes::run(&options, &program)?;
    files.fill(|| findings.html(), || findings.svg_files())?;
    if *json { output::line(&findings.outcome.json()) } else { output::write(findings.to_string()) }
}
