//! What is compared with what?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use apus::{PollMode, Settings};
use serde::{Deserialize, Serialize};

use apus_report::stats::Percentiles;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::Control;

/// One way to move messages between a client and a server, as one experiment measures it.
///
/// An experiment calls [`Contender::serve`] in one process and then [`Contender::drive`] in another
/// one, each pinned to its core. Everything that a contender sets up is set up there, so that no run
/// inherits anything from the one before.
pub trait Contender: Sync {
    /// Its name in results, like `udp`.
    fn name(&self) -> &'static str;

    /// How it is set up, for people who ask whether the comparison is fair.
    fn settings(&self) -> String;

    /// Why it cannot take part in this plan, if so.
    fn sits_out(&self, _plan: &Plan) -> Option<String> {
        None
    }

    /// Whether it only takes part if it is asked for by name.
    fn is_on_request(&self) -> bool {
        false
    }

    /// The side that answers: opens, calls [`Control::ready`], and answers until
    /// [`Control::stop`] is asked or the client is gone.
    ///
    /// # Errors
    ///
    /// The system refuses something.
    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error>;

    /// The side that asks: exchanges messages with `server` for the time that the plan gives it.
    ///
    /// # Errors
    ///
    /// The system refuses something, or the server answers something wrong.
    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error>;
}

/// What a contender is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Payload bytes of a request.
    pub size: usize,
    /// Requests that the client has under way at the same time.
    pub outstanding: usize,
    /// How both sides wait.
    pub poll: PollMode,
    /// How apus is set up on both sides, but for the way to wait.
    #[serde(default)]
    pub settings: Settings,
    /// What happens in this time does not count: caches, windows and estimates settle.
    pub warmup: Duration,
    /// What happens in this time does.
    pub measure: Duration,
    /// Where chance begins.
    pub seed: u64,
    /// Whether apus goes over raw IP where it would go over UDP.
    pub raw: bool,
}

impl Plan {
    /// The longest message that is measured, in bytes. Source: apus's default limit in the udp
    /// profile.
    pub const LARGEST: usize = 64_000_000;

    /// How long a client works after what counts, so that a server that began to count a moment
    /// later can finish. Ours: a thousand times the time between two first messages.
    pub const TAIL: Duration = Duration::from_millis(20);

    /// How long a client works.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.warmup + self.measure + Self::TAIL
    }
}

/// How both sides wait on `cores` if `asked` was asked for: on one core, a side that spins keeps the other from
/// running, so both sleep instead.
#[must_use]
pub fn poll_on(cores: Cores, asked: PollMode) -> PollMode {
    if cores.are_shared() { PollMode::Block } else { asked }
}

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replies {
    /// The request itself.
    Echo,
    /// A few bytes: [`Replies::SHORT`].
    Short,
}

impl Replies {
    /// A short reply: 8 bytes, as much as it needs to say that the request arrived.
    pub const SHORT: [u8; 8] = [0; 8];

    /// Payload bytes of the reply to a request of `size` bytes.
    #[must_use]
    pub const fn length(self, size: usize) -> usize {
        match self {
            Self::Echo => size,
            Self::Short => Self::SHORT.len(),
        }
    }
}

/// What one side saw in the time that counts. A side whose figures no experiment asks for may leave
/// all of them at 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Side {
    /// Messages that were completed: requests at the server, replies at the client.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// How long it was, in nanoseconds.
    pub elapsed: u64,
    /// Processor time of this side's process, in nanoseconds.
    pub cpu: u64,
    /// Time from request to reply in nanoseconds; without samples at the server.
    pub latency: Percentiles,
    /// What else the contender counts, by name: handoffs, say. Baselines count nothing else.
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
