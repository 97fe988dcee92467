//! Which threads run an endpoint's loop, and the text form of that choice.

/// Which threads run a blocking endpoint's loop. The default is [`Engine::Waiters`].
///
/// Its text form, also used with the feature `serde`, is `waiters`, `dedicated` or `dedicated=CPU`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
#[non_exhaustive]
pub enum Engine {
    /// The threads that wait for messages, one at a time. An unloaded call then needs no wake-up.
    /// While no thread waits, a background poller runs the loop.
    #[default]
    Waiters,
    /// A dedicated thread, pinned to a CPU if one is given. With several
    /// [shards](crate::EndpointBuilder::shards) each has a thread, pinned to the next CPU. Each
    /// message is handed off from it to a thread of the application.
    Dedicated {
        /// The CPU to pin the thread to; `None` lets the system choose.
        cpu: Option<usize>,
    },
}

impl std::str::FromStr for Engine {
    type Err = ParseEngineError;

    /// Parses `waiters`, `dedicated`, or `dedicated=3` (a CPU).
    fn from_str(text: &str) -> Result<Self, ParseEngineError> {
        match text.split_once('=') {
            None if text == "waiters" => Ok(Self::Waiters),
            None if text == "dedicated" => Ok(Self::Dedicated { cpu: None }),
            Some(("dedicated", cpu)) => match cpu.parse() {
                Ok(cpu) => Ok(Self::Dedicated { cpu: Some(cpu) }),
                Err(_) => Err(ParseEngineError),
            },
            _ => Err(ParseEngineError),
        }
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Waiters => f.pad("waiters"),
            Self::Dedicated { cpu: None } => f.pad("dedicated"),
            Self::Dedicated { cpu: Some(cpu) } => write!(f, "dedicated={cpu}"),
        }
    }
}

#[cfg(feature = "serde")]
impl From<Engine> for String {
    fn from(engine: Engine) -> Self {
        engine.to_string()
    }
}

#[cfg(feature = "serde")]
impl TryFrom<String> for Engine {
    type Error = ParseEngineError;

    fn try_from(text: String) -> Result<Self, ParseEngineError> {
        text.parse()
    }
}

/// The error for a text that names no [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `waiters`, `dedicated` or `dedicated=CPU`, such as `dedicated=3`")]
pub struct ParseEngineError;
