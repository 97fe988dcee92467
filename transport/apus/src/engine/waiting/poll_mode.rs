//! How a thread waits for packets and messages, as the application configures it.

use std::time::Duration;

/// How a thread waits for packets and messages.
///
/// Spinning responds fastest and occupies a core. Sleeping costs a wake-up of several microseconds.
/// The default spins for 50 µs and then sleeps (HM `homa_interest.c` `homa_interest_wait`).
///
/// As text, and with the feature `serde`: `spin`, `hybrid`, `hybrid=MICROSECONDS` or `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub enum PollMode {
    /// Never sleep.
    Spin,
    /// Spin for this long, then sleep.
    Hybrid(Duration),
    /// Sleep as soon as there is no work.
    Block,
}

impl PollMode {
    /// The kernel module's `poll_usecs`: 50 µs (HM `homa_interest.c` `homa_interest_wait`;
    /// docs/reference/homa-module.md, *Processors, buffers and peers*).
    pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);

    /// Returns for how long to spin before sleeping; `None` stands for forever.
    #[must_use]
    pub const fn spin_for(self) -> Option<Duration> {
        match self {
            Self::Spin => None,
            Self::Hybrid(time) => Some(time),
            Self::Block => Some(Duration::ZERO),
        }
    }

    /// Returns whether a thread sleeps as soon as there is no work.
    pub(crate) const fn sleeps_at_once(self) -> bool {
        matches!(self, Self::Block) || matches!(self, Self::Hybrid(Duration::ZERO))
    }
}

impl Default for PollMode {
    fn default() -> Self {
        Self::Hybrid(Self::DEFAULT_SPIN)
    }
}

impl std::str::FromStr for PollMode {
    type Err = ParsePollModeError;

    /// Parses `spin`, `block`, `hybrid`, or `hybrid=100` (microseconds).
    fn from_str(text: &str) -> Result<Self, ParsePollModeError> {
        match text.split_once('=') {
            None if text == "spin" => Ok(Self::Spin),
            None if text == "block" => Ok(Self::Block),
            None if text == "hybrid" => Ok(Self::default()),
            Some(("hybrid", usecs)) => match usecs.parse() {
                Ok(usecs) => Ok(Self::Hybrid(Duration::from_micros(usecs))),
                Err(_) => Err(ParsePollModeError),
            },
            _ => Err(ParsePollModeError),
        }
    }
}

impl std::fmt::Display for PollMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Spin => f.pad("spin"),
            Self::Block => f.pad("block"),
            Self::Hybrid(time) if *time == Self::DEFAULT_SPIN => f.pad("hybrid"),
            Self::Hybrid(time) => write!(f, "hybrid={}", time.as_micros()),
        }
    }
}

#[cfg(feature = "serde")]
impl From<PollMode> for String {
    fn from(poll: PollMode) -> Self {
        poll.to_string()
    }
}

#[cfg(feature = "serde")]
impl TryFrom<String> for PollMode {
    type Error = ParsePollModeError;

    fn try_from(text: String) -> Result<Self, ParsePollModeError> {
        text.parse()
    }
}

/// The error of parsing a [`PollMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `spin`, `block`, `hybrid` or `hybrid=MICROSECONDS`, such as `hybrid=50`")]
pub struct ParsePollModeError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_agree() {
        for text in ["spin", "block", "hybrid", "hybrid=7"] {
            assert_eq!(text.parse::<PollMode>().unwrap().to_string(), text);
        }
        for text in ["", "Spin", "hybrid=", "hybrid=x", "spin=1"] {
            assert_eq!(text.parse::<PollMode>(), Err(ParsePollModeError), "{text}");
        }
    }

    #[test]
    fn only_block_does_not_spin() {
        assert_eq!(PollMode::Block.spin_for(), Some(Duration::ZERO));
        assert!(PollMode::Block.sleeps_at_once() && !PollMode::default().sleeps_at_once());
        assert_eq!(PollMode::Spin.spin_for(), None);
    }
}
