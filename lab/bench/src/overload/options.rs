//! Options of the overload experiment.

use std::time::Duration;

use apus::PollMode;
use clap::Args;
use serde::Serialize;

use crate::options::Repetition;
use apus_measure::plan::Plan;
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// Open-loop requests from 0.25x to 4x of capacity: goodput and latency
///
/// The server computes for a fixed time on each request; requests are due at random instants
/// (Poisson), whether or not earlier ones are done. Capacity is what apus completes with a few
/// requests always outstanding. Goodput is what was answered before the client lost patience. All
/// other requests are counted: refused by the server, failed, answered too late, or dropped (not
/// answered when the client left). A TCP server (epoll, the same cost, as many threads and
/// connections) does the same beside it. Finally both have nothing to do for a second at a time:
/// the processor time of an idle server, and how soon it answers the first request after that.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(
    mut_arg("seconds", |argument| argument.default_value("0.5")),
    mut_arg("poll", |argument| argument.default_value(PollMode::default().to_string())),
    after_help = "Examples:
  apus-lab bench overload
  apus-lab bench overload --cost 100 --loads 0.75,1,2,4 --json
  apus-lab bench overload --threads 2 --patience 10"
)]
pub struct OverloadOptions {
    /// Payload bytes of a request and of its reply: 1 to 64000000
    #[arg(long, value_name = "BYTES", default_value_t = 100, allow_negative_numbers = true)]
    pub size: usize,
    /// Microseconds that the server computes on each request: 1 to 100000
    #[arg(
        long = "cost",
        value_name = "MICROSECONDS",
        default_value_t = 50.0,
        allow_negative_numbers = true
    )]
    pub cost_us: f64,
    /// Threads of the server: 1 to 64
    #[arg(long, value_name = "THREADS", default_value_t = 1, allow_negative_numbers = true)]
    pub threads: usize,
    /// Milliseconds after which a reply is too late: 1 to 10000
    #[arg(
        long = "patience",
        value_name = "MILLISECONDS",
        default_value_t = 50.0,
        allow_negative_numbers = true
    )]
    pub patience_ms: f64,
    /// Loads as multiples of the capacity, with commas between them: 0.01 to 100 each, ascending
    #[arg(
        long,
        value_name = "LOADS",
        value_delimiter = ',',
        default_value = "0.25,0.5,0.75,1,1.5,2,3,4",
        allow_negative_numbers = true
    )]
    #[serde(skip)]
    pub loads: Vec<f64>,
    /// Seconds and runs of each contender at each load. The way to wait is the server's: the load
    /// generator never waits, so that no request begins late.
    #[command(flatten)]
    #[serde(flatten)]
    pub repetition: Repetition,
}

impl Default for OverloadOptions {
    fn default() -> Self {
        defaults()
    }
}

impl OverloadOptions {
    /// Reference load for tails under overload: busy, but below capacity.
    pub(super) const BUSY: f64 = 0.75;

    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        let size = (1..=Plan::LARGEST).contains(&self.size);
        require(
            size,
            "size",
            "a message has 1 to 64000000 bytes, as streams have no empty ones; try 100",
        )?;
        let cost = (1.0..=100_000.0).contains(&self.cost_us);
        require(cost, "cost", "a request costs 1 to 100000 microseconds; try 50")?;
        let threads = (1..=64).contains(&self.threads);
        require(threads, "threads", "a server has 1 to 64 threads; try 1")?;
        let patience = (1.0..=10_000.0).contains(&self.patience_ms);
        require(patience, "patience", "a client waits for 1 to 10000 milliseconds; try 50")?;
        let ranges = self.loads.iter().all(|load| (0.01..=100.0).contains(load));
        let ascending = self.loads.is_sorted_by(|a, b| a < b) && !self.loads.is_empty();
        let problem =
            "loads are 0.01 to 100 times the capacity, each once, ascending; try 0.75,1,4";
        require(ranges && ascending, "loads", problem)?;
        self.repetition.check()
    }

    /// Returns the application's cost of a request.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_secs_f64(self.cost_us / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        OverloadOptions::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = OverloadOptions::default;
        let wrong = [
            OverloadOptions { size: 0, ..good() },
            OverloadOptions { cost_us: 0.0, ..good() },
            OverloadOptions { cost_us: f64::NAN, ..good() },
            OverloadOptions { threads: 65, ..good() },
            OverloadOptions { patience_ms: 0.5, ..good() },
            OverloadOptions { loads: vec![], ..good() },
            OverloadOptions { loads: vec![1.0, 1.0], ..good() },
            OverloadOptions { loads: vec![0.0, 1.0], ..good() },
            OverloadOptions {
                repetition: Repetition { seconds: 0.0, ..good().repetition },
                ..good()
            },
            OverloadOptions { repetition: Repetition { runs: 0, ..good().repetition }, ..good() },
        ];
        let names = wrong.map(|options| match options.check().unwrap_err() {
            Error::Option { option, .. } => option,
            other => panic!("{other}"),
        });
        let expected = [
            "size", "cost", "cost", "threads", "patience", "loads", "loads", "loads", "seconds",
            "runs",
        ];
        assert_eq!(names, expected);
    }
}
