//! Queries: requests with the type of their response, to one process or to several at once.

use crate::introspection::process::{Error, Process};
use crate::introspection::rpc_row::RpcRow;
use crate::introspection::sender_row::Senders;
use crate::introspection::trace_status::TraceStatus;
use crate::introspection::{exchange, response};
use crate::snapshot::Snapshot;
use apus_trace::Trace;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;

/// Longest time for the response of a single process. Chosen by us: a process responds within a
/// millisecond, unless it is stopped or out of processor time.
const SINGLE: Duration = Duration::from_secs(5);
/// Longest time for the responses of all processes of [`Query::all`] together. Chosen by us: a
/// person waits for it, and Prometheus gives up a scrape after ten seconds.
const ALL: Duration = Duration::from_secs(1);
/// Longest time for all traces together: they have megabytes.
const ALL_TRACES: Duration = Duration::from_secs(5);

/// A request with the type of its response. [`Query::of`] sends it to one process, [`Query::all`]
/// to several at once.
pub struct Query<T> {
    name: &'static str,
    parse: fn(&[u8]) -> Result<T, String>,
    /// The limit of [`Query::all`].
    limit: Duration,
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Query<T> {}

impl<T> fmt::Debug for Query<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Query").field(&self.name).finish()
    }
}

impl Query<Snapshot> {
    /// The counters of all endpoints of the process.
    pub const SNAPSHOT: Self = Self::json("metrics");
}

impl Query<Vec<RpcRow>> {
    /// The live RPCs of the process, the oldest first.
    pub const RPCS: Self = Self::json("rpcs");
}

impl Query<Senders> {
    /// The peers whose messages are arriving at the process.
    pub const SENDERS: Self = Self::json("senders");
}

impl Query<TraceStatus> {
    /// The state of the process's time trace.
    pub const TRACE_STATUS: Self = Self::json("trace status");
    /// Freezes the time trace, and returns its state afterwards.
    pub const FREEZE_TRACE: Self = Self::json("trace freeze");
    /// Resumes recording, and returns the state of the trace afterwards.
    pub const RESUME_TRACE: Self = Self::json("trace resume");
}

impl Query<Trace> {
    /// The time trace of the process.
    pub const TRACE: Self = Self {
        name: "trace dump",
        parse: |mut bytes| Trace::read(&mut bytes).map_err(|error| error.to_string()),
        limit: ALL_TRACES,
    };
}

impl<T: DeserializeOwned> Query<T> {
    /// Returns the query of a request whose response is JSON, for instance one that an application
    /// [publishes](crate::introspection::publish).
    #[must_use]
    pub const fn json(name: &'static str) -> Self {
        let parse = |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|error| error.to_string());
        Self { name, parse, limit: ALL }
    }
}

impl<T> Query<T> {
    /// Sends the request to one process and returns its response.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn of(self, process: &Process) -> Result<T, Error> {
        self.read(process, bodies(&[process], self.name, SINGLE).remove(0))
    }

    /// Sends the request to all of `processes` at once and returns their responses in the same
    /// order. It takes at most a second, or five for traces: processes that have not responded by
    /// then are [`Error::Unresponsive`], and delay no other process.
    #[must_use]
    pub fn all(self, processes: &[Process]) -> Vec<Result<T, Error>> {
        let all: Vec<_> = processes.iter().collect();
        let bodies = bodies(&all, self.name, self.limit);
        processes.iter().zip(bodies).map(|(process, body)| self.read(process, body)).collect()
    }

    fn read(self, process: &Process, body: Result<Vec<u8>, Error>) -> Result<T, Error> {
        let invalid = |message| Error::InvalidResponse { pid: process.pid(), message };
        (self.parse)(&body?).map_err(invalid)
    }
}

/// Returns the bodies of the responses.
fn bodies(processes: &[&Process], request: &str, limit: Duration) -> Vec<Result<Vec<u8>, Error>> {
    let responses = exchange::responses(processes, request, limit);
    let body = |(process, response): (&&Process, Result<Vec<u8>, Error>)| {
        response::body(process.pid(), response?)
    };
    processes.iter().zip(responses).map(body).collect()
}

/// Sends any request to one process and returns the body of its response.
pub(super) fn request(process: &Process, request: &str) -> Result<Vec<u8>, Error> {
    bodies(&[process], request, SINGLE).remove(0)
}
