//! Errors of experiments.

use std::io;

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation and its object, like `bind 127.0.0.1:0`.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// An option has a value unusable for the experiment.
    #[error("{option}: {problem}")]
    Option {
        /// Name of the option, like `size`.
        option: &'static str,
        /// The fault, and a valid value.
        problem: String,
    },
    /// One side of an experiment, which runs in its own process, failed.
    #[error("{agent}: {said}")]
    Agent {
        /// Name of the contender and its side, like `tcp server`.
        agent: String,
        /// Its error message.
        said: String,
    },
    /// A call of an apus endpoint failed.
    #[error("{doing}: {source}")]
    Endpoint {
        /// The operation and its object, like `call 127.0.0.1:4000`.
        doing: String,
        /// The endpoint's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system or the user lacks a prerequisite of the experiment, for example a network of
    /// several hosts.
    #[error("{problem}")]
    Unavailable {
        /// The lack, and its remedy.
        problem: Box<dyn std::error::Error + Send + Sync>,
        /// Whether every retry would fail in the same way.
        is_final: bool,
    },
    /// One side received a message that its peer must not send.
    #[error("{0}")]
    Peer(String),
}

impl Error {
    /// Returns whether every retry would fail in the same way: an option is wrong, or this system
    /// or user lacks a prerequisite of the experiment.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Option { .. } => true,
            Self::Unavailable { is_final, .. } => *is_final,
            Self::System { .. } | Self::Agent { .. } | Self::Endpoint { .. } | Self::Peer(_) => {
                false
            }
        }
    }

    /// Wraps an endpoint's error with the failed operation, like `call 127.0.0.1:4000`.
    pub fn endpoint(doing: String, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Endpoint { doing, source: Box::new(source) }
    }
}

/// Returns an error about `option` unless `good`; `problem` describes the valid values.
pub fn require(good: bool, option: &'static str, problem: &str) -> Result<(), Error> {
    if good { Ok(()) } else { Err(Error::Option { option, problem: problem.to_owned() }) }
}

/// Adds the failed operation to a system error.
pub trait Doing<T> {
    /// `what` returns the operation and its object, like `bind 127.0.0.1:0`.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::System { doing: what(), source: error.into() })
    }
}

/// Returns the message of `check` for default options after `change`; empty if they are valid.
#[cfg(any(test, feature = "testing"))]
pub fn option_problem<Options: Default>(
    check: fn(&Options) -> Result<(), Error>,
    change: fn(&mut Options),
) -> String {
    let mut options = Options::default();
    change(&mut options);
    check(&options).err().map(|error| error.to_string()).unwrap_or_default()
}
