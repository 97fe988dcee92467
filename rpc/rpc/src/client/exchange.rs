//! One exchange with a server: the options of a transport call, and the interpretation of its
//! response.

use crate::body::Body;
use crate::code::Code;
use crate::envelope::{EnvelopeError, ResponseHead};
use crate::message::Response;
use crate::status::Status;
use apus::{CallOptions, Execution};
use bytes::Bytes;
use std::time::Instant;

/// Returns the options of a call with this deadline.
pub(super) fn options(deadline: Option<Instant>) -> CallOptions {
    deadline.map_or_else(CallOptions::new, |deadline| CallOptions::new().deadline(deadline))
}

/// Returns the status for an invalid response.
pub(super) fn malformed(error: EnvelopeError) -> Status {
    let message = format!("the server's response is malformed: {error}");
    Status::new(Code::Internal, message).with_execution(Execution::Unknown)
}

/// Reads the response to a CALL with this signature.
pub(super) fn answer(message: Bytes, signature: u32) -> Result<(ResponseHead, Bytes), Status> {
    let (answer, data) = ResponseHead::parse(message).map_err(malformed)?;
    if answer.echo != signature {
        let text = "the server answered with the response of another method";
        return Err(Status::new(Code::Internal, text).with_execution(Execution::Unknown));
    }
    match answer.status {
        Some(status) => Err(status),
        None => Ok((answer, data)),
    }
}

/// Returns a complete response.
pub(super) fn complete(answer: ResponseHead, data: Bytes) -> Response {
    let body = Body::from(data).with_trailers(answer.trailers);
    Response::new(body)
        .with_metadata(answer.head.unwrap_or_default())
        .with_method_error(answer.method_error)
}
