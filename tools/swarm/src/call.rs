//! What does an application want?

use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// One call, as it was planned before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who calls.
    pub from: HostId,
    /// Whom.
    pub to: HostId,
    /// When.
    pub at: Nanos,
    /// Bytes of the request.
    pub request: u32,
    /// Bytes of the response.
    pub response: u32,
    /// How long the server works on it.
    pub service: Nanos,
    /// What the server does then.
    pub answer: Answer,
    /// How long after the call its caller lets it go, if it has not ended.
    pub cancel: Option<Nanos>,
    /// How long after the call its deadline is.
    pub deadline: Option<Nanos>,
    /// Whether it may be executed twice.
    pub idempotent: bool,
}

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It replies.
    Reply,
    /// It lets the request go without a reply.
    Abandon,
}
