//! Options of the handoff lab.

use apus::PollMode;
use clap::Args;
use serde::Serialize;

use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// The double handoff: a thread woken before its message is queued
///
/// A server announces a message to a waiting thread before the packet is queued, and releases the
/// lock for acks in between, as the Linux kernel's Homa module did: a quick thread finds nothing
/// and is woken again (`publish-first`). For comparison, the same code with the two steps swapped
/// (`enqueue-first`), and apus, with a dedicated engine and with a receiver that polls the network
/// itself. One request of 64 bytes is outstanding at a time; each trial has a fresh process. The
/// speed of receivers depends on the number of free cores.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize)]
#[command(after_help = "Examples:
  apus-lab lab handoff
  apus-lab lab handoff --messages 20000 --runs 1 --json")]
pub struct HandoffOptions {
    /// Requests in each trial: 100 to 100000000
    #[arg(long, value_name = "REQUESTS", default_value_t = 100_000, allow_negative_numbers = true)]
    pub messages: u64,
    /// Trials of each kind, 1 to 1000; ratios are the median, the least and the greatest over the
    /// trials, counts their sum
    #[arg(long, value_name = "RUNS", default_value_t = 5, allow_negative_numbers = true)]
    pub runs: usize,
    /// How receivers wait: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for that time and then
    /// sleep (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t)]
    pub poll: PollMode,
}

impl Default for HandoffOptions {
    fn default() -> Self {
        defaults()
    }
}

impl HandoffOptions {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a value that is not.
    pub fn check(&self) -> Result<(), Error> {
        let messages = (100..=100_000_000).contains(&self.messages);
        require(messages, "messages", "a trial has 100 to 100000000 requests; try 100000")?;
        require((1..=1000).contains(&self.runs), "runs", "there are 1 to 1000 trials; try 5")
    }
}
