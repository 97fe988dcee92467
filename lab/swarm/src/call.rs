//! Planned calls of a run.

use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// A call, planned before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCall {
    /// Client.
    pub from: HostId,
    /// Server.
    pub to: HostId,
    /// Time of the call.
    pub at: Nanos,
    /// Length of the request in bytes.
    pub request: u32,
    /// Length of the response in bytes.
    pub response: u32,
    /// Duration of the server's work.
    pub service: Nanos,
    /// Action of the server after that work.
    pub answer: ServerAction,
    /// Time from the call until the client cancels it, if it has not ended.
    pub cancel: Option<Nanos>,
    /// Deadline, relative to the call.
    pub deadline: Option<Nanos>,
    /// Whether it may be executed twice.
    pub idempotent: bool,
    /// The earlier call whose messages it repeats, if any.
    pub repeats: Option<u32>,
}

/// Action of a server on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAction {
    /// Replies.
    Reply,
    /// Abandons the request without a reply.
    Abandon,
}
