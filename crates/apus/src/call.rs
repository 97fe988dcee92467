//! What can be said about a call besides its request?

use std::time::{Duration, Instant};

use crate::engine::calls::Key;
use crate::engine::message::Ended;
use crate::engine::tracer::stage;
use apus_trace::Event;

/// Options of a call. The default has no deadline and may be executed once at most.
///
/// ```
/// use apus::CallOptions;
/// use std::time::Duration;
///
/// let options = CallOptions::new().timeout(Duration::from_millis(5)).idempotent(true);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct CallOptions {
    pub(crate) deadline: Option<Instant>,
    pub(crate) idempotent: bool,
    pub(crate) no_wait: bool,
}

impl CallOptions {
    /// The default.
    pub const fn new() -> Self {
        Self { deadline: None, idempotent: false, no_wait: false }
    }

    /// The call fails if it has not completed by then. It covers the time for which the call waits for
    /// room to be sent.
    pub const fn deadline(mut self, at: Instant) -> Self {
        self.deadline = Some(at);
        self
    }

    /// The same, from now on.
    pub fn timeout(self, time: Duration) -> Self {
        let now = Instant::now();
        // A time too long to be represented is none.
        match now.checked_add(time) {
            Some(at) => self.deadline(at),
            None => self,
        }
    }

    /// Executing the request twice does no harm: the call survives a restart of the server, where it
    /// would fail otherwise.
    pub const fn idempotent(mut self, yes: bool) -> Self {
        self.idempotent = yes;
        self
    }

    /// If there is no room (a limit of the configuration is reached), fail at once with a
    /// [back-pressure](crate::CallError::is_back_pressure) error instead of waiting.
    pub const fn no_wait(mut self, yes: bool) -> Self {
        self.no_wait = yes;
        self
    }
}

/// Names a call that was sent, so that it can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(crate) key: Key,
}

/// The end of a call that was sent without waiting for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Completion {
    /// What was given to `send`.
    pub cookie: u64,
    /// The response, or why there is none.
    pub result: Result<bytes::Bytes, apus_proto::RpcError>,
}

impl From<Ended> for Completion {
    /// The application gets it.
    fn from(Ended { cookie, result, rpc }: Ended) -> Self {
        stage(rpc, Event::Returned, result.as_ref().map_or(0, bytes::Bytes::len));
        Self { cookie, result }
    }
}
