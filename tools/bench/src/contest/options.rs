//! What can be asked of an experiment?

use std::time::Duration;

use apus::{PollMode, Settings};
use serde_json::{Map, Value, json};

use apus_contenders::contender::Plan;
use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// Options of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Payload bytes of a request: 1 to 64 MB.
    pub size: usize,
    /// Requests under way at the same time: 1 to 65536.
    pub outstanding: usize,
    /// Seconds that count, for each contender in each run: 0.01 to 3600. A tenth of it is warm-up
    /// before.
    pub seconds: f64,
    /// How often everything is repeated: 1 to 1000.
    pub runs: usize,
    /// Where chance begins.
    pub seed: u64,
    /// How both sides wait.
    pub poll: PollMode,
    /// How apus is set up on both sides, but for the way to wait and to peers.
    pub settings: Settings,
    /// Only these contenders, by name; all if empty.
    pub only: Vec<String>,
    /// Whether apus goes over raw IP (protocol 146, the kernel's profile) in place of UDP.
    pub raw: bool,
}

impl Options {
    /// One second for each contender in each of five runs, spinning.
    #[must_use]
    pub fn new(size: usize, outstanding: usize) -> Self {
        Self {
            size,
            outstanding,
            seconds: 1.0,
            runs: 5,
            seed: 1,
            poll: PollMode::Spin,
            settings: Settings::default(),
            only: Vec::new(),
            raw: false,
        }
    }

    /// Whether each value is in its range.
    ///
    /// # Errors
    ///
    /// Names the first one that is not, and one that would be.
    pub fn check(&self) -> Result<(), Error> {
        let size = (1..=Plan::LARGEST).contains(&self.size);
        require(size, "size", "a message has 1 to 64000000 bytes; try 100")?;
        let outstanding = (1..=65_536).contains(&self.outstanding);
        require(outstanding, "outstanding", "1 to 65536 requests may be under way; try 8")?;
        check_repetition(self.seconds, self.runs)
    }

    /// What each side is told.
    #[must_use]
    pub(super) fn plan(&self) -> Plan {
        let measure = Duration::from_secs_f64(self.seconds);
        Plan {
            size: self.size,
            outstanding: self.outstanding,
            poll: self.poll,
            settings: self.settings.clone(),
            warmup: measure / 10,
            measure,
            seed: self.seed,
            raw: self.raw,
        }
    }

    /// As a result shows it.
    pub(super) fn config(&self) -> Map<String, Value> {
        let options = [
            ("size", json!(self.size)),
            ("outstanding", json!(self.outstanding)),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
            ("poll", json!(self.poll)),
            ("driver", json!(if self.raw { "raw" } else { "udp" })),
        ];
        let configured = (self.settings != Settings::default())
            .then(|| ("configuration", json!(self.settings.toml().trim().replace('\n', "; "))));
        named(options.into_iter().chain(configured))
    }
}

/// Whether an experiment may last that long.
pub fn check_repetition(seconds: f64, runs: usize) -> Result<(), Error> {
    let in_range = (0.01..=3600.0).contains(&seconds);
    require(in_range, "seconds", "a contender is measured for 0.01 to 3600 seconds; try 1")?;
    require((1..=1000).contains(&runs), "runs", "there are 1 to 1000 runs; try 5")
}

/// Whether all that are asked for take part.
pub fn check_only(only: &[String], names: &[&str]) -> Result<(), Error> {
    let Some(stranger) = only.iter().find(|name| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    let names = names.join(", ");
    let problem = format!("`{stranger}` takes no part in it; these do: {names}");
    Err(Error::Option { option: "only", problem })
}

/// All who were asked for sit out; the notes say why.
pub fn nobody_left(notes: &[String]) -> Error {
    let problem = format!("nobody is left to measure ({})", notes.join("; "));
    Error::Option { option: "only", problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        Options::new(100, 1).check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = Options::new(100, 1);
        let wrong = [
            Options { size: 0, ..good.clone() },
            Options { size: Plan::LARGEST + 1, ..good.clone() },
            Options { outstanding: 0, ..good.clone() },
            Options { seconds: 0.0, ..good.clone() },
            Options { seconds: f64::NAN, ..good.clone() },
            Options { runs: 0, ..good },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        size: a message has 1 to 64000000 bytes; try 100
        size: a message has 1 to 64000000 bytes; try 100
        outstanding: 1 to 65536 requests may be under way; try 8
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        runs: there are 1 to 1000 runs; try 5
        ");
    }
}
