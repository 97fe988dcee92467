//! Options of the demo.

use apus_workload::Workload;
use clap::Args;

use crate::options::Repetition;
use apus_contenders::contender::Plan;
use apus_report::experiment::{Experiment, defaults};
use apus_report::findings::Findings;
use apus_testbed::error::{Error, require};
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
    /// Sizes of the messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose lines are
    /// `SIZE SHARE`, the share of the messages up to that size
    #[arg(long, value_name = "WORKLOAD", default_value = "w4")]
    pub workload: String,
    /// Longer messages are cut to this: 1 to 64000000. The kernel module and the published comparisons cut at 1 MB
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000, allow_negative_numbers = true)]
    pub truncate: u32,
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
        let truncate = (1..=Plan::LARGEST).contains(&(self.truncate as usize));
        require(truncate, "truncate", "messages end at 1 to 64000000 bytes; try 1000000")?;
        let load = (0.01..=1.0).contains(&self.load);
        require(load, "load", "a load is 0.01 to 1 of what is possible; try 0.8")?;
        let rate = self.rate.is_none_or(|rate| (1.0..=1e8).contains(&rate));
        require(rate, "rate", "1 to 100000000 requests are due each second; try 10000")?;
        self.repetition.check()?;
        self.workload().map(drop)
    }

    /// Returns the workload, truncated.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn workload(&self) -> Result<Workload, Error> {
        workload(&self.workload, self.truncate)
    }
}

/// Returns the workload of that name, truncated.
pub(crate) fn workload(name: &str, truncate: u32) -> Result<Workload, Error> {
    let workload = name
        .parse::<Workload>()
        .map_err(|error| Error::Option { option: "workload", problem: error.to_string() })?;
    Ok(workload.truncated(truncate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_range() {
        Options::default().check().unwrap();
        let workload = Options::default().workload().unwrap();
        assert_eq!(workload.to_string(), "w4 truncated at 1000000 bytes");
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let repetition = |change: fn(&mut Repetition)| {
            let mut options = Options::default();
            change(&mut options.repetition);
            options
        };
        let wrong = [
            Options { truncate: 0, ..Options::default() },
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
        let unknown = Options { workload: "w9".to_owned(), ..Options::default() };
        let error = unknown.check().unwrap_err().to_string();
        assert!(error.starts_with("workload: `w9` is not a workload (`w1` to `w5`)"), "{error}");
    }
}
