//! The server's side of a typed call.

use super::codec::{Codec, CodecError, Message, ROOM};
use super::framing::{MAX_PART, Parts};
use super::method::Method;
use super::streaming::Streaming;
use crate::code::Code;
use crate::message::{Request, Response};
use crate::status::Status;
use apus::Execution;

/// Returns the arguments in a request.
///
/// # Errors
///
/// [`Code::FailedPrecondition`]: the client uses other argument or result types;
/// [`Code::InvalidArgument`]: the request is malformed. The method was not executed.
pub async fn arguments<C: Codec, A: Message>(
    method: &Method,
    request: Request,
) -> Result<A, Status> {
    check(method, &request)?;
    let bytes = request.into_body().into_bytes(MAX_PART).await.map_err(before_execution)?;
    C::decode(&bytes).map_err(|error| malformed(&error))
}

/// Returns the arguments in a request, the last of which is a stream.
///
/// # Errors
///
/// [`Code::FailedPrecondition`]: the client uses other argument or result types;
/// [`Code::InvalidArgument`]: the request is malformed. The method was not executed.
pub async fn arguments_with_stream<C: Codec, A: Message, P: Message>(
    method: &Method,
    request: Request,
) -> Result<(A, Streaming<P>), Status> {
    check(method, &request)?;
    let mut parts = Parts::new(request.into_body());
    let Some(first) = std::future::poll_fn(|cx| parts.poll_part(cx)).await else {
        let message = "the request ended before its arguments";
        return Err(Status::not_executed(Code::InvalidArgument, message));
    };
    let arguments =
        C::decode(&first.map_err(before_execution)?).map_err(|error| malformed(&error))?;
    Ok((arguments, Streaming::of_parts::<C>(parts)))
}

/// Compares the client's signature with the method's.
fn check(method: &Method, request: &Request) -> Result<(), Status> {
    let (theirs, ours) = (request.signature(), method.signature());
    if theirs == ours || theirs == 0 {
        return Ok(());
    }
    let message = format!(
        "{} has other arguments or results here ({ours:08x}) than the client was built with ({theirs:08x})",
        method.path()
    );
    Err(Status::not_executed(Code::FailedPrecondition, message))
}

/// Returns the status of a request whose arguments did not arrive: the method was not executed.
fn before_execution(status: Status) -> Status {
    status.with_execution(Execution::NotExecuted)
}

fn malformed(error: &CodecError) -> Status {
    let message = format!("the request is malformed: {error}");
    Status::not_executed(Code::InvalidArgument, message)
}

/// Returns the response with this result.
///
/// # Errors
///
/// [`Code::Internal`]: the result cannot be encoded.
pub fn reply<C: Codec, T: Message>(result: &T) -> Result<Response, Status> {
    let body = C::encode(result, Vec::with_capacity(ROOM)).map_err(|error| unsendable(&error))?;
    Ok(Response::new(body))
}

/// Returns the response of a method with an error type.
///
/// # Errors
///
/// [`Code::Internal`]: the result cannot be encoded.
pub fn reply_or_error<C: Codec, T: Message, E: Message>(
    result: &Result<T, E>,
) -> Result<Response, Status> {
    match result {
        Ok(value) => reply::<C, T>(value),
        Err(error) => Ok(reply::<C, E>(error)?.with_method_error(true)),
    }
}

/// Returns the response with this stream.
///
/// # Errors
///
/// None; generated code treats all kinds of results the same.
#[allow(clippy::unnecessary_wraps, reason = "generated code treats all kinds of results alike")]
pub fn reply_stream<C: Codec, T: Message>(parts: Streaming<T>) -> Result<Response, Status> {
    Ok(Response::new(parts.into_body::<C>(None)))
}

/// Returns the response of a method with an error type.
///
/// # Errors
///
/// [`Code::Internal`]: the error cannot be encoded.
pub fn reply_stream_or_error<C: Codec, T: Message, E: Message>(
    result: Result<Streaming<T>, E>,
) -> Result<Response, Status> {
    match result {
        Ok(parts) => reply_stream::<C, T>(parts),
        Err(error) => Ok(reply::<C, E>(&error)?.with_method_error(true)),
    }
}

fn unsendable(error: &CodecError) -> Status {
    Status::new(Code::Internal, format!("the result cannot be sent: {error}"))
}

/// Returns the status of a call to a method that the service lacks.
#[must_use]
pub fn unknown_method(request: &Request) -> Status {
    let message = format!("the server has no method {:?}", request.method().as_str());
    Status::not_executed(Code::Unimplemented, message)
}
