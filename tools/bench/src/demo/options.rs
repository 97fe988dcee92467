//! Options of the demo.

use clap::Args;

use crate::options::{Repetition, Sizes, check_load, check_rate};
use apus_report::experiment::{Experiment, defaults};
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::Spawner;

/// Show what apus does for tail latency, beside TCP: the main job, in under a minute
///
/// A server and a client in separate processes exchange messages of a published workload, over apus and
/// over TCP: first one by one, then as fast as they can, then at a load that leaves every contender
/// some air. The result is a table, and a page with charts. No privileges are needed.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(
    mut_arg("seconds", |argument| argument.default_value("1.5")),
    after_help = "Examples:
  apus demo
  apus demo --workload w3 --load 0.5 --html w3.html
  apus demo --json --no-html > demo.json"
)]
pub struct Options {
    /// Sizes of the messages.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Load as a share of the capacity of the slowest contender: 0.01 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, allow_negative_numbers = true)]
    pub load: f64,
    /// Requests per second, instead of a load
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true, conflicts_with = "load")]
    pub rate: Option<f64>,
    /// Length and seed of the load. The way to wait is the servers': the load generator never waits, so that no request
    /// begins late.
    #[command(flatten)]
    pub repetition: Repetition,
}

impl Default for Options {
    fn default() -> Self {
        defaults()
    }
}

impl Experiment for Options {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        super::run(self, &Spawner::this_program()?)
    }
}

impl Options {
    /// Checks that each value is in its range, and that the workload exists.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a value that is not.
    pub fn check(&self) -> Result<(), Error> {
        self.sizes.check()?;
        check_load(self.load)?;
        check_rate(self.rate)?;
        self.repetition.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_range() {
        Options::default().check().unwrap();
        let workload = Options::default().sizes.check().unwrap();
        assert_eq!(workload.to_string(), "w4 truncated at 1000000 bytes");
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let sizes = |workload: &str, truncate| Options {
            sizes: Sizes { workload: workload.to_owned(), truncate },
            ..Options::default()
        };
        let repetition = |change: fn(&mut Repetition)| {
            let mut options = Options::default();
            change(&mut options.repetition);
            options
        };
        let wrong = [
            sizes("w4", 0),
            Options { load: 1.5, ..Options::default() },
            Options { load: f64::NAN, ..Options::default() },
            Options { rate: Some(0.0), ..Options::default() },
            repetition(|it| it.seconds = 0.0),
            repetition(|it| it.runs = 0),
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        truncate: messages end at 1 to 64000000 bytes; try 1000000
        load: a load is 0.01 to 1 of what is possible; try 0.8
        load: a load is 0.01 to 1 of what is possible; try 0.8
        rate: 1 to 100000000 requests are due each second; try 10000
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        runs: there are 1 to 1000 runs; try 5
        ");
        let error = sizes("w9", 1).check().unwrap_err().to_string();
        assert!(error.starts_with("workload: `w9` is not a workload (`w1` to `w5`)"), "{error}");
    }
}
