//! How does somebody wait for a packet?

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a client or a server waits for the next packet. All contenders of an experiment wait in the
/// same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Poll {
    /// Ask again and again. Lowest latency; costs a core.
    Spin,
    /// Ask again and again for this long, then sleep in the kernel.
    Hybrid(Duration),
    /// Sleep in the kernel at once. Costs nothing while idle, and a wake-up per packet.
    Block,
}

impl Poll {
    /// How long hybrid polling spins if nothing else is asked for: 50 us. Source: the reference's
    /// section B.6 (busy polling for 50 us helps the p99 of W2 and W3 by 10 to 20 %).
    pub const DEFAULT_SPIN: Duration = Duration::from_micros(50);

    /// How long to ask before sleeping; `None` stands for ever.
    #[must_use]
    pub const fn spin_for(self) -> Option<Duration> {
        match self {
            Self::Spin => None,
            Self::Hybrid(spin) => Some(spin),
            Self::Block => Some(Duration::ZERO),
        }
    }
}

impl fmt::Display for Poll {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spin => formatter.write_str("spin"),
            Self::Hybrid(Self::DEFAULT_SPIN) => formatter.write_str("hybrid"),
            Self::Hybrid(spin) => write!(formatter, "hybrid={}", spin.as_micros()),
            Self::Block => formatter.write_str("block"),
        }
    }
}

/// Why a text is no polling mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no way to wait: use `spin`, `hybrid`, `block`, or `hybrid=50` to spin for 50 us \
     before sleeping"
)]
pub struct PollError(String);

impl FromStr for Poll {
    type Err = PollError;

    fn from_str(text: &str) -> Result<Self, PollError> {
        match text {
            "spin" => Ok(Self::Spin),
            "hybrid" => Ok(Self::Hybrid(Self::DEFAULT_SPIN)),
            "block" => Ok(Self::Block),
            _ => text
                .strip_prefix("hybrid=")
                .and_then(|micros| micros.parse().ok())
                .map(|micros| Self::Hybrid(Duration::from_micros(micros)))
                .ok_or_else(|| PollError(text.to_owned())),
        }
    }
}

impl From<Poll> for String {
    fn from(poll: Poll) -> Self {
        poll.to_string()
    }
}

impl TryFrom<String> for Poll {
    type Error = PollError;

    fn try_from(text: String) -> Result<Self, PollError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_are_the_same_thing() {
        for text in ["spin", "hybrid", "hybrid=20", "block"] {
            assert_eq!(text.parse::<Poll>().unwrap().to_string(), text);
        }
        assert_eq!("hybrid=50".parse(), Ok(Poll::Hybrid(Poll::DEFAULT_SPIN)));
    }

    #[test]
    fn a_wrong_text_is_answered_with_right_ones() {
        for text in ["", "Spin", "hybrid=", "hybrid=-1", "hybrid=5us", "sleep"] {
            let error = text.parse::<Poll>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains("`hybrid=50`"));
        }
    }
}
