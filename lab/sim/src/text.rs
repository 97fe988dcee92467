//! Text forms of buffers, spreading, traffic patterns and replies.

use std::fmt;
use std::str::FromStr;

use crate::experiment::Pattern;
use crate::fabric::{Buffers, Spreading};
use crate::host::Answer;
use apus_workload::units::{bytes, time};

impl fmt::Display for Buffers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerPort(u64::MAX) => formatter.write_str("unlimited"),
            Self::PerPort(bytes) => write!(formatter, "per-port={bytes}"),
            Self::PerPortTime(time) => write!(formatter, "per-port={time}ns"),
            Self::Shared(bytes) => write!(formatter, "shared={bytes}"),
        }
    }
}

impl FromStr for Buffers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem =
            "write per-port=BYTES, per-port=TIME, shared=BYTES or unlimited, like per-port=150000";
        match text.split_once('=') {
            None if text == "unlimited" => Ok(Self::PerPort(u64::MAX)),
            Some(("per-port", number)) if number.ends_with('s') => {
                time(number).map(Self::PerPortTime)
            }
            Some(("per-port", number)) => bytes(number).map(Self::PerPort),
            Some(("shared", number)) => bytes(number).map(Self::Shared),
            _ => Err(problem.to_owned()),
        }
    }
}

impl fmt::Display for Spreading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PerPacket => "packet",
            Self::PerFlow => "flow",
        })
    }
}

impl FromStr for Spreading {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "packet" => Ok(Self::PerPacket),
            "flow" => Ok(Self::PerFlow),
            _ => Err("write packet or flow".to_owned()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => formatter.write_str("uniform"),
            Self::Incast(senders) => write!(formatter, "incast={senders}"),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = "write uniform, or incast=SENDERS like incast=15";
        match text.split_once('=') {
            None if text == "uniform" => Ok(Self::Uniform),
            Some(("incast", senders)) => match senders.parse() {
                Ok(senders) if senders > 0 => Ok(Self::Incast(senders)),
                _ => Err(problem.to_owned()),
            },
            _ => Err(problem.to_owned()),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("none"),
            Self::Echo => formatter.write_str("echo"),
            Self::Bytes(bytes) => write!(formatter, "{bytes}"),
        }
    }
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Nothing),
            "echo" => Ok(Self::Echo),
            _ => match bytes(text) {
                Ok(bytes @ 1..=1_000_000) => Ok(Self::Bytes(bytes as u32)),
                _ => Err("write none (one-way messages), echo (request and response) or the bytes of a response, \
                          1 to 1000000, like 10000"
                    .to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip() {
        for text in ["unlimited", "per-port=150000", "per-port=40000ns", "shared=12000000"] {
            assert_eq!(text.parse::<Buffers>().unwrap().to_string(), text);
        }
        for text in ["uniform", "incast=15"] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        for text in ["packet", "flow"] {
            assert_eq!(text.parse::<Spreading>().unwrap().to_string(), text);
        }
        for text in ["none", "echo", "10000"] {
            assert_eq!(text.parse::<Answer>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_error_shows_a_valid_text() {
        assert!("incast=0".parse::<Pattern>().unwrap_err().contains("incast=15"));
        assert!("incast".parse::<Pattern>().unwrap_err().contains("incast=15"));
        assert!("big".parse::<Buffers>().unwrap_err().contains("per-port=150000"));
        assert!("shared=lots".parse::<Buffers>().unwrap_err().contains("150000"));
        assert!("all".parse::<Spreading>().unwrap_err().contains("packet"));
        assert!("yes".parse::<Answer>().unwrap_err().contains("echo"));
    }
}
