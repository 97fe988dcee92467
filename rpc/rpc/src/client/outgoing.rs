//! A call being sent to a server.

use super::exchange::options;
use crate::code::Code;
use crate::context::Context;
use crate::envelope::CallHead;
use crate::limits::LONGEST_PART;
use crate::message::Request;
use crate::status::Status;
use apus::{CallOptions, Payload};
use std::time::Instant;

/// A CALL in the form in which it is sent.
pub(super) struct PreparedCall {
    pub(super) payload: Payload,
    pub(super) options: CallOptions,
    pub(super) signature: u32,
    pub(super) deadline: Option<Instant>,
}

impl PreparedCall {
    /// Takes the part of a request that is sent at once, in the context of the current task.
    pub(super) fn new(request: &mut Request) -> Result<Self, Status> {
        let context = Context::current();
        let deadline = context.sooner(request.deadline());
        let head = CallHead {
            method: request.method().clone(),
            signature: request.signature(),
            time_left: deadline.map(time_left).transpose()?,
            trace: request.trace().or(context.trace),
            metadata: std::mem::take(request.metadata_mut()),
            idempotent: request.is_idempotent(),
            open: !request.body().is_complete(),
        };
        let limit = if head.open { LONGEST_PART } else { usize::MAX };
        let data = request.body_mut().take_ready_up_to(limit);
        let envelope = head
            .encode_with_room(data.copied_len())
            .map_err(|error| Status::not_executed(Code::InvalidArgument, error.to_string()))?;
        let options = options(deadline).idempotent(head.idempotent);
        let payload = data.behind(envelope);
        Ok(Self { payload, options, signature: head.signature, deadline })
    }
}

/// Returns the microseconds until the deadline, at least one.
fn time_left(deadline: Instant) -> Result<u64, Status> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let message = "the deadline passed before the call was sent";
        return Err(Status::not_executed(Code::DeadlineExceeded, message));
    }
    Ok(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).max(1))
}
