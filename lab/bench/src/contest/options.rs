//! Options of contests.

use std::time::Duration;

use apus::{Settings, Shards};
use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::options::Repetition;
use apus_measure::plan::Plan;
use apus_report::experiment::{config, defaults};
use apus_testbed::error::{Error, require};

/// The options of a contest.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
pub struct ContestOptions {
    /// Payload bytes of a request: 1 to 64000000. Streams, which are measured beside, have no empty
    /// messages
    #[arg(long, value_name = "BYTES", default_value_t = 100, allow_negative_numbers = true)]
    pub size: usize,
    /// Outstanding requests: 1 to 65536
    #[arg(long, value_name = "REQUESTS", default_value_t = 1, allow_negative_numbers = true)]
    pub outstanding: usize,
    /// Only these contenders, by the names of their rows, with commas between them. On request
    /// `apus-untraced` and `apus-traced` take part in `rtt` and `rate`: apus with time traces off,
    /// and with all RPCs traced
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub only: Vec<String>,
    /// Also measure what is encrypted: `apus-sealed`, and `tls-tcp`, TLS 1.3 over TCP, with
    /// throw-away keys
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
    /// Also endpoints with these numbers of shards, with commas between them: 1 to 64 each.
    /// --outstanding requests are outstanding for each shard. Both sides use all cores, and sleep
    /// when there is nothing to do
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<usize>,
    /// Length, seed and waiting; a tenth of the seconds is warm-up before.
    #[command(flatten)]
    #[serde(flatten)]
    pub repetition: Repetition,
    /// How apus is set up on both sides, except for the way to wait and the peers.
    #[arg(skip)]
    #[serde(skip)]
    pub settings: Settings,
    /// Whether apus uses raw IP (protocol 146, the kernel's profile) instead of UDP.
    #[arg(skip)]
    #[serde(skip)]
    pub raw: bool,
}

impl ContestOptions {
    /// Returns the defaults of every contest with these sizes and numbers of outstanding requests.
    #[must_use]
    pub fn new(size: usize, outstanding: usize) -> Self {
        Self { size, outstanding, ..defaults() }
    }

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
        let outstanding = (1..=65_536).contains(&self.outstanding);
        require(outstanding, "outstanding", "1 to 65536 requests are outstanding; try 8")?;
        let shards = self.shards.iter().all(|count| (1..=Shards::MAX).contains(count));
        require(shards, "shards", "an endpoint has 1 to 64 shards; try 1,2,4")?;
        self.repetition.check()
    }

    /// Returns the plan of both sides.
    #[must_use]
    pub(super) fn plan(&self) -> Plan {
        let measure = Duration::from_secs_f64(self.repetition.seconds);
        Plan {
            size: self.size,
            outstanding: self.outstanding,
            poll: self.repetition.poll,
            settings: self.settings.clone(),
            warmup: measure / 10,
            measure,
            seed: self.repetition.seed,
            raw: self.raw,
            keys: None,
        }
    }

    /// Returns the options as a result shows them.
    pub(super) fn config(&self) -> Map<String, Value> {
        let mut config = config(self);
        config.insert("driver".to_owned(), json!(if self.raw { "raw" } else { "udp" }));
        if self.settings != Settings::default() {
            let settings = self.settings.toml().trim().replace('\n', "; ");
            config.insert("configuration".to_owned(), json!(settings));
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        ContestOptions::new(100, 1).check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = ContestOptions::new(100, 1);
        let repetition = |change: fn(&mut Repetition)| {
            let mut options = good.clone();
            change(&mut options.repetition);
            options
        };
        let wrong = [
            ContestOptions { size: 0, ..good.clone() },
            ContestOptions { size: Plan::LARGEST + 1, ..good.clone() },
            ContestOptions { outstanding: 0, ..good.clone() },
            repetition(|it| it.seconds = 0.0),
            repetition(|it| it.seconds = f64::NAN),
            repetition(|it| it.runs = 0),
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        size: a message has 1 to 64000000 bytes, as streams have no empty ones; try 100
        size: a message has 1 to 64000000 bytes, as streams have no empty ones; try 100
        outstanding: 1 to 65536 requests are outstanding; try 8
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        runs: there are 1 to 1000 runs; try 5
        ");
    }
}
