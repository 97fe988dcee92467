//! What can be asked of the experiment?

use apus::PollMode;
use serde_json::{Map, Value, json};

use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// Options of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Requests in each trial, one after the other: 100 to 100,000,000.
    pub messages: u64,
    /// Trials: 1 to 1000.
    pub runs: usize,
    /// How receivers wait.
    pub poll: PollMode,
}

impl Default for Options {
    /// As many as were published, with receivers that wait as the kernel module's do.
    fn default() -> Self {
        Self { messages: 100_000, runs: 5, poll: PollMode::default() }
    }
}

impl Options {
    /// Whether each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first one that is not, and one that would be.
    pub fn check(&self) -> Result<(), Error> {
        let messages = (100..=100_000_000).contains(&self.messages);
        require(messages, "messages", "a trial has 100 to 100000000 requests; try 100000")?;
        require((1..=1000).contains(&self.runs), "runs", "there are 1 to 1000 trials; try 5")
    }

    /// As a result shows it.
    pub(super) fn config(&self) -> Map<String, Value> {
        named([
            ("messages", json!(self.messages)),
            ("runs", json!(self.runs)),
            ("poll", json!(self.poll)),
        ])
    }
}
