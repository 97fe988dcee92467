//! Options of the endpoints experiment.

use apus::{PollMode, Shards};
use clap::Args;
use serde::Serialize;

use crate::options::Repetition;
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// What an endpoint costs: memory, threads, and the time to create it and to call
///
/// One process opens client endpoints one after another, calls one server with each of them in turn
/// over UDP, leaves all of them alone for --seconds, and calls with each once more. `kb_created` is
/// the memory that the process has touched per endpoint before any call, `kb_at_rest` after one
/// call of each, `kb_per_shard` the same per shard; `background_threads` run the loops of all of
/// them while the application does not; `idle_cpu_percent` is the processor time of the process in
/// the pause, as part of a core. `server_bytes_per_peer` is the memory that the server has touched
/// for each of them. What a process has once, whatever the number of its endpoints, does not count.
/// With --shards, a thread for each shard makes these calls: the server has a peer for each shard.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(
    mut_arg("poll", |argument| argument.default_value(PollMode::default().to_string())),
    after_help = "Examples:
  apus-lab bench endpoints
  apus-lab bench endpoints --count 10000 --runs 1 --json
  apus-lab bench endpoints --count 1 --shards 8 --seconds 10"
)]
pub struct EndpointsOptions {
    /// Endpoints of the client: 1 to 60000. Each takes a few descriptors (`ulimit -n`)
    #[arg(long, value_name = "ENDPOINTS", default_value_t = 1000, allow_negative_numbers = true)]
    pub count: usize,
    /// Shards of each of these endpoints: 1 to 64
    #[arg(long, value_name = "SHARDS", default_value_t = 1, allow_negative_numbers = true)]
    pub shards: usize,
    /// Payload bytes of a request and of its reply: 0 to 1000000
    #[arg(long, value_name = "BYTES", default_value_t = 100, allow_negative_numbers = true)]
    pub size: usize,
    /// The pause, runs, and how threads wait.
    #[command(flatten)]
    #[serde(flatten)]
    pub repetition: Repetition,
}

impl Default for EndpointsOptions {
    fn default() -> Self {
        defaults()
    }
}

impl EndpointsOptions {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        let count = (1..=60_000).contains(&self.count);
        require(
            count,
            "count",
            "there are 1 to 60000 endpoints, as a host has as many ports; try 1000",
        )?;
        let shards = (1..=Shards::MAX).contains(&self.shards);
        require(shards, "shards", "an endpoint has 1 to 64 shards; try 8")?;
        require(self.size <= 1_000_000, "size", "a message has 0 to 1000000 bytes; try 100")?;
        self.repetition.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        EndpointsOptions::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = EndpointsOptions::default;
        let wrong = [
            EndpointsOptions { count: 0, ..good() },
            EndpointsOptions { count: 60_001, ..good() },
            EndpointsOptions { shards: 0, ..good() },
            EndpointsOptions { shards: 65, ..good() },
            EndpointsOptions { size: 1_000_001, ..good() },
            EndpointsOptions { repetition: Repetition { runs: 0, ..good().repetition }, ..good() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        count: there are 1 to 60000 endpoints, as a host has as many ports; try 1000
        count: there are 1 to 60000 endpoints, as a host has as many ports; try 1000
        shards: an endpoint has 1 to 64 shards; try 8
        shards: an endpoint has 1 to 64 shards; try 8
        size: a message has 0 to 1000000 bytes; try 100
        runs: there are 1 to 1000 runs; try 5
        ");
    }
}
