//! Why did an experiment not come to a result?

use std::io;

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{doing}: {source}")]
    System {
        /// The operation and what it was applied to, like `bind 127.0.0.1:0`.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// An option has a value that the experiment cannot work with.
    #[error("{option}: {problem}")]
    Option {
        /// Name of the option, like `size`.
        option: &'static str,
        /// What is wrong, and a value that would be right.
        problem: String,
    },
    /// One side of an experiment failed. It runs in a process of its own; this is what it said.
    #[error("{agent}: {said}")]
    Agent {
        /// Which side of which contender, like `tcp server`.
        agent: String,
        /// Its error message.
        said: String,
    },
    /// An apus endpoint could not do what it was asked for.
    #[error("{doing}: {source}")]
    Endpoint {
        /// The operation and what it was applied to, like `call 127.0.0.1:4000`.
        doing: String,
        /// What the endpoint said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The system refuses a network of several hosts.
    #[error(transparent)]
    Fabric(crate::fabric::Refusal),
    /// A side received something that its peer should not have sent.
    #[error("{0}")]
    Peer(String),
}

impl Error {
    /// What an endpoint said when it was to do something, like `call 127.0.0.1:4000`.
    pub fn endpoint(doing: String, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Endpoint { doing, source: Box::new(source) }
    }
}

/// Refuses an option that is not `good`; `problem` says what would be.
pub fn require(good: bool, option: &'static str, problem: &str) -> Result<(), Error> {
    if good { Ok(()) } else { Err(Error::Option { option, problem: problem.to_owned() }) }
}

/// Adds to an error of the system what was being done.
pub trait Doing<T> {
    /// `what` is the operation and its object, like `bind 127.0.0.1:0`.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::System { doing: what(), source: error.into() })
    }
}

/// What `check` says of default options after a change; nothing if they are good.
#[cfg(any(test, feature = "testing"))]
pub fn refusal<Options: Default>(
    check: fn(&Options) -> Result<(), Error>,
    change: fn(&mut Options),
) -> String {
    let mut options = Options::default();
    change(&mut options);
    check(&options).err().map(|error| error.to_string()).unwrap_or_default()
}
