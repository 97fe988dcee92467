//! Options that several experiments share.

use apus::PollMode;
use apus_measure::plan::{Plan, check_seconds, poll_on};
use apus_testbed::error::{Error, require};
use apus_testbed::machine::Cores;
use apus_workload::Workload;
use clap::Args;
use serde::Serialize;

/// The length of an experiment, its seed, and how its threads wait.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
pub struct Repetition {
    /// Seconds that count, for each contender in each run: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Number of times everything is repeated, 1 to 1000; results are the median over the runs, the
    /// least and the greatest
    #[arg(long, value_name = "RUNS", default_value_t = 5, allow_negative_numbers = true)]
    pub runs: usize,
    /// Seed of everything random: the same seed draws the same messages
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for that time and
    /// then sleep (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = PollMode::Spin)]
    pub poll: PollMode,
}

impl Repetition {
    /// Returns the repetition for these cores: threads on a shared core do not spin.
    #[must_use]
    pub fn on(&self, cores: Cores) -> Self {
        Self { poll: poll_on(cores, self.poll), ..self.clone() }
    }

    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        check_seconds(self.seconds)?;
        require((1..=1000).contains(&self.runs), "runs", "there are 1 to 1000 runs; try 5")
    }
}

/// The sizes of the messages of a load.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize)]
pub struct Sizes {
    /// Sizes of the messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose
    /// lines are `SIZE SHARE`, the share of the messages up to that size. No message is empty:
    /// streams have no empty ones
    #[arg(long, value_name = "WORKLOAD", default_value = "w4")]
    pub workload: String,
    /// Longer messages are cut to this: 1 to 64000000. The kernel module and the published
    /// comparisons cut at 1 MB
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000, allow_negative_numbers = true)]
    pub truncate: u32,
}

impl Sizes {
    /// Checks that the values are in their ranges and that the workload exists, and returns it.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<Workload, Error> {
        let truncate = (1..=Plan::LARGEST).contains(&(self.truncate as usize));
        require(truncate, "truncate", "messages end at 1 to 64000000 bytes; try 1000000")?;
        workload(&self.workload, self.truncate)
    }
}

/// Returns the workload of that name, truncated.
///
/// # Errors
///
/// No workload has this name, or it has empty messages, which streams cannot carry.
pub fn workload(name: &str, truncate: u32) -> Result<Workload, Error> {
    let workload = name
        .parse::<Workload>()
        .map_err(|error| Error::Option { option: "workload", problem: error.to_string() })?;
    let has_bytes = workload.sizes().smallest() > 0;
    require(
        has_bytes,
        "workload",
        "each message has at least one byte here, as streams have no empty ones; try w4",
    )?;
    Ok(workload.truncated(truncate))
}

/// Checks a load as a share of a capacity.
///
/// # Errors
///
/// The value is out of range.
pub fn check_load(load: f64) -> Result<(), Error> {
    let in_range = (0.01..=1.0).contains(&load);
    require(in_range, "load", "a load is 0.01 to 1 of what is possible; try 0.8")
}

/// Checks the rate that replaces a load.
///
/// # Errors
///
/// The value is out of range.
pub fn check_rate(rate: Option<f64>) -> Result<(), Error> {
    let in_range = rate.is_none_or(|rate| (1.0..=1e8).contains(&rate));
    require(in_range, "rate", "1 to 100000000 requests are due each second; try 10000")
}

/// Checks that all contenders of `--only` take part.
///
/// # Errors
///
/// Names the first contender that does not.
pub fn check_only(only: &[String], names: &[&str]) -> Result<(), Error> {
    let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    let names = names.join(", ");
    let problem = format!("`{unknown}` takes no part in it; these do: {names}");
    Err(Error::Option { option: "only", problem })
}

/// Returns the error of an experiment in which all contenders sit out, for the reasons in `notes`.
pub fn none_left(notes: &[String]) -> Error {
    let problem = format!("no contender is left to measure ({})", notes.join("; "));
    Error::Option { option: "only", problem }
}
