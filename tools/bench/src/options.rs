//! Options that several experiments share.

use apus::PollMode;
use apus_contenders::contender::poll_on;
use apus_testbed::error::{Error, require};
use apus_testbed::machine::Cores;
use clap::Args;
use serde::Serialize;

/// The length of an experiment, its seed, and how its threads wait.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
pub struct Repetition {
    /// Seconds that count, for each contender in each run: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Number of times everything is repeated, 1 to 1000; results are the median over the runs, the least and the
    /// greatest
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
    /// Returns the repetition on these cores: threads that share a core do not spin.
    #[must_use]
    pub fn on(&self, cores: Cores) -> Self {
        Self { poll: poll_on(cores, self.poll), ..self.clone() }
    }

    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a value that is not.
    pub fn check(&self) -> Result<(), Error> {
        check_seconds(self.seconds)?;
        require((1..=1000).contains(&self.runs), "runs", "there are 1 to 1000 runs; try 5")
    }
}

/// Checks the time for which a contender is measured.
///
/// # Errors
///
/// It is out of range.
pub fn check_seconds(seconds: f64) -> Result<(), Error> {
    let in_range = (0.01..=3600.0).contains(&seconds);
    require(in_range, "seconds", "a contender is measured for 0.01 to 3600 seconds; try 1")
}

/// Checks that all contenders of `--only` take part.
///
/// # Errors
///
/// Names the first one that does not.
pub fn check_only(only: &[String], names: &[&str]) -> Result<(), Error> {
    let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    let names = names.join(", ");
    let problem = format!("`{unknown}` takes no part in it; these do: {names}");
    Err(Error::Option { option: "only", problem })
}

/// Returns the error of an experiment whose contenders all sit out, for the reasons in `notes`.
pub fn none_left(notes: &[String]) -> Error {
    let problem = format!("no contender is left to measure ({})", notes.join("; "));
    Error::Option { option: "only", problem }
}
