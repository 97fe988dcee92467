//! One exchange with a server: the options of a call of the transport, and a response that is none.

use crate::code::Code;
use crate::envelope::EnvelopeError;
use crate::status::Status;
use apus::{CallOptions, Execution};
use std::time::Instant;

/// Returns the options of a call with this deadline.
pub(super) fn options(deadline: Option<Instant>) -> CallOptions {
    deadline.map_or_else(CallOptions::new, |deadline| CallOptions::new().deadline(deadline))
}

/// Returns the status of a response that is none.
pub(super) fn malformed(error: EnvelopeError) -> Status {
    let message = format!("the server's response is malformed: {error}");
    Status::new(Code::Internal, message).with_execution(Execution::Unknown)
}
