//! Options of the demo.

use clap::Args;
use serde::Serialize;

use crate::options::Repetition;
use apus_measure::plan::check_seconds;
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// Show what apus does for tail latency, beside TCP: the main job, in under a minute
///
/// Builds a network on this machine: four hosts on links of 40 Mbit/s, made of network namespaces.
/// All of them exchange messages of the published workload W4 that keep the links 80 % busy, over
/// apus, over TCP with one connection between two hosts, and over TCP with one connection for each
/// outstanding request. The result is a table, and a page with charts. The network is taken down
/// again, however the command ends.
///
/// This needs root, or a user who may create user namespaces, and `ip` and `tc`. Where that is not
/// allowed, the command says what is missing and how to allow it. Then the same messages go through
/// the simulator, beside DCTCP, and round trip and rate are measured over loopback.
///
/// Other workloads, loads and links: `apus-lab bench cluster`, `apus-lab sim run`. Loopback with
/// busy processors: `apus-lab bench load`.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(after_help = "Examples:
  apus-lab demo
  apus-lab demo --html demo.html
  apus-lab demo --json --no-html > demo.json
  apus-lab demo --seconds 5 --runs 5
  apus-lab demo --sealed")]
pub struct DemoOptions {
    /// Seconds that count, for each transport in each run: 0.01 to 3600. In the simulator, 8000
    /// messages stand for a second
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Number of times everything is repeated, 1 to 1000; results are the median over the runs, the
    /// least and the greatest
    #[arg(long, value_name = "RUNS", default_value_t = 3, allow_negative_numbers = true)]
    pub runs: usize,
    /// Seed of everything random: the same seed draws the same messages
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// Also measure `apus-sealed`: every packet encrypted and authenticated, with throw-away keys.
    /// Not in the simulator
    #[arg(long)]
    pub sealed: bool,
}

impl Default for DemoOptions {
    fn default() -> Self {
        defaults()
    }
}

impl DemoOptions {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        check_seconds(self.seconds)?;
        require((1..=1000).contains(&self.runs), "runs", "there are 1 to 1000 runs; try 3")
    }

    /// Returns these options as repetition options of other experiments, with the poll mode of
    /// `base`.
    pub(super) fn repetition(&self, base: &Repetition) -> Repetition {
        let Self { seconds, runs, seed, .. } = *self;
        Repetition { seconds, runs, seed, ..base.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_range() {
        DemoOptions::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let wrong = [
            DemoOptions { seconds: 0.0, ..DemoOptions::default() },
            DemoOptions { runs: 0, ..DemoOptions::default() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        runs: there are 1 to 1000 runs; try 3
        ");
    }
}
