//! The plan of a run, and the figures of one side.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use apus::{PollMode, Settings};
use apus_report::stats::Percentiles;
use serde::{Deserialize, Serialize};

use crate::error::{Error, require};
use crate::machine::Cores;

/// Parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Payload bytes of a request.
    pub size: usize,
    /// Number of outstanding requests.
    pub outstanding: usize,
    /// Poll mode of both sides.
    pub poll: PollMode,
    /// Settings of apus on both sides, except the poll mode.
    #[serde(default)]
    pub settings: Settings,
    /// Unmeasured warm-up, which lets caches, windows and estimates settle.
    pub warmup: Duration,
    /// Duration of the measurement.
    pub measure: Duration,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether apus uses raw IP in place of UDP.
    pub raw: bool,
    /// Folder of the keys for contenders that encrypt; `None` if none takes part.
    #[serde(default)]
    pub keys: Option<PathBuf>,
}

impl Plan {
    /// Longest message in bytes. Source: apus's default limit in the udp profile.
    pub const LARGEST: usize = 64_000_000;

    /// Extra time of a client after the measurement, so that a server whose measurement
    /// started a moment later can finish. Chosen by us: a thousand times the time between two first
    /// messages.
    pub const TAIL: Duration = Duration::from_millis(20);

    /// Returns how long a client runs.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.warmup + self.measure + Self::TAIL
    }
}

/// Returns the poll mode of both sides on `cores`. On one core, a spinning side prevents the other
/// from running, so both sleep regardless of `asked`.
#[must_use]
pub fn poll_on(cores: Cores, asked: PollMode) -> PollMode {
    if cores.are_shared() { PollMode::Block } else { asked }
}

/// Checks the duration of a measurement.
///
/// # Errors
///
/// It is out of range.
pub fn check_seconds(seconds: f64) -> Result<(), Error> {
    let in_range = (0.01..=3600.0).contains(&seconds);
    require(in_range, "seconds", "a contender is measured for 0.01 to 3600 seconds; try 1")
}

/// Replies of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replies {
    /// The request itself.
    Echo,
    /// A short reply: [`Replies::SHORT`].
    Short,
}

impl Replies {
    /// Payload of a short reply: 8 bytes, enough to confirm the request.
    pub const SHORT: [u8; 8] = [0; 8];

    /// Returns the payload bytes of the reply to a request of `size` bytes.
    #[must_use]
    pub const fn length(self, size: usize) -> usize {
        match self {
            Self::Echo => size,
            Self::Short => Self::SHORT.len(),
        }
    }
}

/// Measurements of one side. Figures that no experiment uses may stay 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Side {
    /// Completed messages: requests at the server, replies at the client.
    pub messages: u64,
    /// Payload bytes of these messages.
    pub bytes: u64,
    /// Duration of the measurement in nanoseconds.
    pub elapsed: u64,
    /// Processor time of this side's process in nanoseconds.
    pub cpu: u64,
    /// Time from request to reply in nanoseconds; no samples at the server.
    pub latency: Percentiles,
    /// Further counters by name, for example handoffs. Baselines have none.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_that_share_a_core_sleep() {
        let apart = Cores { client: Some(0), server: Some(1) };
        let together = Cores { client: None, server: None };
        assert_eq!(poll_on(apart, PollMode::Spin), PollMode::Spin);
        assert_eq!(poll_on(together, PollMode::Spin), PollMode::Block);
    }
}
