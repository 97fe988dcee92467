//! What can be asked of the demo?

use apus::PollMode;
use apus_workload::Workload;

use crate::contest::check_repetition;
use apus_contenders::contender::Plan;
use apus_testbed::error::{Error, require};

/// Options of the demo.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whose messages: `w1` to `w5`, a size, or a file.
    pub workload: String,
    /// Longer messages are as long as this; 1 to 64 MB. The kernel module and the published
    /// comparisons truncate at 1 MB.
    pub truncate: u32,
    /// Load as a share of what the slowest contender can do: 0.01 to 1.
    pub load: f64,
    /// Requests per second instead of a load, if somebody knows better.
    pub rate: Option<f64>,
    /// Seconds that count, for each contender in each run: 0.01 to 3600.
    pub seconds: f64,
    /// How often the load is repeated: 1 to 1000.
    pub runs: usize,
    /// Where chance begins.
    pub seed: u64,
    /// How servers wait. The load generator never waits, so that no request begins late.
    pub poll: PollMode,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workload: "w4".to_owned(),
            truncate: 1_000_000,
            load: 0.8,
            rate: None,
            seconds: 1.5,
            runs: 5,
            seed: 1,
            poll: PollMode::Spin,
        }
    }
}

impl Options {
    /// Whether each value is in its range, and the workload exists.
    ///
    /// # Errors
    ///
    /// Names the first one that is not, and one that would be.
    pub fn check(&self) -> Result<(), Error> {
        let truncate = (1..=Plan::LARGEST).contains(&(self.truncate as usize));
        require(truncate, "truncate", "messages end at 1 to 64000000 bytes; try 1000000")?;
        let load = (0.01..=1.0).contains(&self.load);
        require(load, "load", "a load is 0.01 to 1 of what is possible; try 0.8")?;
        let rate = self.rate.is_none_or(|rate| (1.0..=1e8).contains(&rate));
        require(rate, "rate", "1 to 100000000 requests are due each second; try 10000")?;
        check_repetition(self.seconds, self.runs)?;
        self.workload().map(drop)
    }

    /// The workload as it is used.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn workload(&self) -> Result<Workload, Error> {
        workload(&self.workload, self.truncate)
    }
}

/// The workload of that name, truncated.
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
        let wrong = [
            Options { truncate: 0, ..Options::default() },
            Options { load: 1.5, ..Options::default() },
            Options { load: f64::NAN, ..Options::default() },
            Options { rate: Some(0.0), ..Options::default() },
            Options { seconds: 0.0, ..Options::default() },
            Options { runs: 0, ..Options::default() },
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
        let stranger = Options { workload: "w9".to_owned(), ..Options::default() };
        let error = stranger.check().unwrap_err().to_string();
        assert!(error.starts_with("workload: `w9` is not a workload (`w1` to `w5`)"), "{error}");
    }
}
