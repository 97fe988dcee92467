//! Parameters of a search.

use std::fmt;
use std::str::FromStr;

use apus::Settings;
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use apus_measure::error::{Error, require};
use apus_measure::exchange::{Calls, Exchange, Pair, Path};
use apus_measure::plan::Replies;
use apus_report::experiment::defaults;
use apus_report::result::named;

// Options of a search. The help text of the command describes them, so this type has no
// documentation comment.
#[derive(Clone, Debug, PartialEq, Args)]
#[allow(missing_docs, reason = "it would replace the command's explanation")]
pub struct TuneOptions {
    /// Goals to improve: `latency` (short calls, one at a time), `rate` (short calls, many at a
    /// time), `throughput` (long messages)
    #[arg(long, value_name = "GOALS", value_delimiter = ',', default_values_t = [Goal::Latency, Goal::Rate])]
    pub goals: Vec<Goal>,
    /// Seconds for everything together: 5 to 86400; on a busy machine it takes longer until the
    /// first setting is decided
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Rounds of all values of a setting, 3 to 100; fewer if the time is over
    #[arg(long, value_name = "RUNS", default_value_t = 5, allow_negative_numbers = true)]
    pub runs: usize,
    /// Initial settings of the search.
    #[arg(skip)]
    pub settings: Settings,
}

impl Default for TuneOptions {
    /// Latency and rate of short calls, in one minute.
    fn default() -> Self {
        defaults()
    }
}

/// Goal of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Short calls, one at a time: their median duration.
    Latency,
    /// Short calls, many at a time: calls per second.
    Rate,
    /// Long messages, a few at a time: bytes per second.
    Throughput,
}

impl Goal {
    const ALL: [Self; 3] = [Self::Latency, Self::Rate, Self::Throughput];

    /// Returns the exchange that measures the goal.
    pub(super) const fn exchange(self) -> Exchange {
        let calls = match self {
            Self::Latency => Calls::OneByOne,
            Self::Rate => Calls::Many(Replies::Echo),
            Self::Throughput => Calls::Many(Replies::Short),
        };
        Exchange { calls, path: Path::Udp }
    }

    /// Returns the payload bytes of a request, and the number of outstanding requests.
    pub(super) const fn load(self) -> (usize, usize) {
        match self {
            Self::Latency => (100, 1),
            Self::Rate => (100, 64),
            Self::Throughput => (500_000, 8),
        }
    }

    /// Returns the value of its figure.
    pub(super) fn value(self, pair: &Pair) -> f64 {
        match self {
            Self::Latency => pair.client.latency.p50 as f64 / 1e3,
            Self::Rate => pair.krps(),
            Self::Throughput => pair.gbps(),
        }
    }

    /// Returns the name of the experiment's figure.
    pub(super) const fn figure(self) -> &'static str {
        match self {
            Self::Latency => "p50_us",
            Self::Rate => "krps",
            Self::Throughput => "gbps",
        }
    }

    /// Returns whether a smaller figure is better.
    pub(super) const fn less_is_better(self) -> bool {
        matches!(self, Self::Latency)
    }

    /// Returns a description of the workload and its figure.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Latency => "latency: median time of calls of 100 bytes, one at a time",
            Self::Rate => "rate: calls of 100 bytes a second, 64 at a time",
            Self::Throughput => "throughput: bytes a second in messages of 500 kB, 8 at a time",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Latency => "latency",
            Self::Rate => "rate",
            Self::Throughput => "throughput",
        })
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|goal| goal.to_string() == text);
        found
            .ok_or_else(|| "write latency, rate or throughput, with commas between them".to_owned())
    }
}

impl TuneOptions {
    /// Checks that each value is in its range.
    ///
    /// # Errors
    ///
    /// Contains the first value out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        let seconds = (5.0..=86_400.0).contains(&self.seconds);
        require(seconds, "seconds", "a search takes 5 to 86400 seconds; try 60")?;
        require((3..=100).contains(&self.runs), "runs", "there are 3 to 100 rounds; try 5")?;
        require(!self.goals.is_empty(), "goals", "there is at least one goal; try latency,rate")
    }

    pub(super) fn config(&self) -> Map<String, Value> {
        let goals: Vec<String> = self.goals.iter().map(ToString::to_string).collect();
        named([
            ("goals", json!(goals.join(","))),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_named() {
        let wrong = [
            TuneOptions { seconds: 1.0, ..TuneOptions::default() },
            TuneOptions { runs: 2, ..TuneOptions::default() },
            TuneOptions { goals: Vec::new(), ..TuneOptions::default() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        seconds: a search takes 5 to 86400 seconds; try 60
        runs: there are 3 to 100 rounds; try 5
        goals: there is at least one goal; try latency,rate
        ");
        TuneOptions::default().check().unwrap();
    }

    #[test]
    fn goals_are_read_as_they_are_written() {
        for goal in Goal::ALL {
            assert_eq!(goal.to_string().parse(), Ok(goal));
        }
        assert!("speed".parse::<Goal>().unwrap_err().contains("latency"));
    }
}
