//! What can be asked of the experiment?

use std::time::Duration;

use apus::PollMode;
use serde_json::{Map, Value, json};

use crate::contest::check_repetition;
use apus_contenders::contender::Plan;
use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// Options of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Payload bytes of a request and of its reply: 1 to 64 MB.
    pub size: usize,
    /// Microseconds that the application computes on each request: 1 to 100,000.
    pub cost_us: f64,
    /// Threads of the server: 1 to 64.
    pub threads: usize,
    /// Milliseconds after which a client has no use for a reply any more: 1 to 10,000.
    pub patience_ms: f64,
    /// Loads as multiples of the capacity, ascending: 0.01 to 100 each.
    pub loads: Vec<f64>,
    /// Seconds that count, for each contender at each load in each run: 0.01 to 3600.
    pub seconds: f64,
    /// How often everything is repeated: 1 to 1000.
    pub runs: usize,
    /// Where chance begins.
    pub seed: u64,
    /// How servers wait. The load generator never waits, so that no request begins late.
    pub poll: PollMode,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size: 100,
            cost_us: 50.0,
            threads: 1,
            patience_ms: 50.0,
            loads: vec![0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0],
            seconds: 0.5,
            runs: 5,
            seed: 1,
            poll: PollMode::default(),
        }
    }
}

impl Options {
    /// The load with which tails under overload are compared: busy, and with time to spare.
    pub(super) const BUSY: f64 = 0.75;

    /// Whether each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first one that is not, and one that would be.
    pub fn check(&self) -> Result<(), Error> {
        let size = (1..=Plan::LARGEST).contains(&self.size);
        require(size, "size", "a message has 1 to 64000000 bytes; try 100")?;
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
        check_repetition(self.seconds, self.runs)
    }

    /// What a request costs the application.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_secs_f64(self.cost_us / 1e6)
    }

    /// As a result shows it.
    pub(super) fn config(&self) -> Map<String, Value> {
        named([
            ("size", json!(self.size)),
            ("cost_us", json!(self.cost_us)),
            ("threads", json!(self.threads)),
            ("patience_ms", json!(self.patience_ms)),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
            ("poll", json!(self.poll)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        Options::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = Options::default;
        let wrong = [
            Options { size: 0, ..good() },
            Options { cost_us: 0.0, ..good() },
            Options { cost_us: f64::NAN, ..good() },
            Options { threads: 65, ..good() },
            Options { patience_ms: 0.5, ..good() },
            Options { loads: vec![], ..good() },
            Options { loads: vec![1.0, 1.0], ..good() },
            Options { loads: vec![0.0, 1.0], ..good() },
            Options { seconds: 0.0, ..good() },
            Options { runs: 0, ..good() },
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
