//! How is a thread woken twice for one message?

use apus::PollMode;
use apus_labs::handoff::{self, Options};
use apus_testbed::process::Spawner;
use clap::Args;

use crate::failure::Failure;
use crate::output;

/// The double handoff: a thread woken before its message is there
///
/// A server makes a message known to a waiting thread before the packet is queued, and opens the lock for acks in
/// between, as the Linux kernel's Homa module did: who is quick finds nothing and is told once more
/// (`publish-first`). Beside it the same code with the two steps the other way round (`enqueue-first`), and the
/// product, with a dedicated engine and with a receiver that polls the network itself. One request of 64 bytes is under
/// way at a time; each trial has a process of its own. How quick receivers are depends on how many cores are free.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus lab handoff
  apus lab handoff --messages 20000 --runs 1 --json")]
pub(crate) struct Arguments {
    /// Requests in each trial: 100 to 100000000
    #[arg(long, value_name = "REQUESTS", default_value_t = Options::default().messages, allow_negative_numbers = true)]
    messages: u64,
    /// Trials of each kind, 1 to 1000; ratios are the median over them, the least and the greatest, and
    /// counts their sum
    #[arg(long, value_name = "RUNS", default_value_t = Options::default().runs, allow_negative_numbers = true)]
    runs: usize,
    /// How receivers wait: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for so long and then
    /// sleep (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = Options::default().poll)]
    poll: PollMode,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the experiment and prints its result.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { messages, runs, poll, json } = *arguments;
    let outcome = handoff::run(&Options { messages, runs, poll }, &Spawner::this_program()?)?;
    if json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}
