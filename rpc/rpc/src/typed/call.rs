//! The client's side of a typed call.

use super::codec::{Codec, CodecError, Message, ROOM};
use super::error::ServiceError;
use super::framing::{MAX_PART, Parts, frame};
use super::method::Method;
use super::options::ClientOptions;
use super::streaming::Streaming;
use crate::body::Body;
use crate::code::Code;
use crate::message::{Request, Response};
use crate::status::Status;

/// Sends the calls of a generated client: a [`Channel`](crate::Channel), or layers around one.
pub trait Service:
    tower_service::Service<Request, Response = Response, Error = Status, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Service for S where
    S: tower_service::Service<Request, Response = Response, Error = Status, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Returns the request of a method with these arguments.
///
/// # Errors
///
/// [`Code::InvalidArgument`]: the arguments cannot be encoded.
pub fn request<C: Codec, A: Message>(
    options: &ClientOptions,
    method: &Method,
    arguments: &A,
) -> Result<Request, Status> {
    let body =
        C::encode(arguments, Vec::with_capacity(ROOM)).map_err(|error| unsendable(&error))?;
    Ok(prepared(options, method, body.into()))
}

/// Returns the request of a method with these arguments and a stream as the last one.
///
/// # Errors
///
/// [`Code::InvalidArgument`]: the arguments cannot be encoded.
pub fn request_with_stream<C: Codec, A: Message, P: Message>(
    options: &ClientOptions,
    method: &Method,
    arguments: &A,
    parts: Streaming<P>,
) -> Result<Request, Status> {
    let first = frame::<C, A>(arguments).map_err(|error| unsendable(&error))?;
    Ok(prepared(options, method, parts.into_body::<C>(Some(first))))
}

fn prepared(options: &ClientOptions, method: &Method, body: Body) -> Request {
    let request = Request::new(method.path(), body)
        .with_signature(method.signature())
        .with_idempotent(method.is_idempotent())
        .with_metadata(options.metadata.clone());
    match options.timeout {
        Some(timeout) => request.with_timeout(timeout),
        None => request,
    }
}

fn unsendable(error: &CodecError) -> Status {
    Status::not_executed(Code::InvalidArgument, format!("the arguments cannot be sent: {error}"))
}

/// Sends a request once the service is ready.
///
/// # Errors
///
/// The status of the call.
pub async fn send<S: Service>(service: &S, request: Request) -> Result<Response, Status> {
    let mut service = service.clone();
    std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(request).await
}

/// Returns the result in a response.
///
/// # Errors
///
/// [`Code::Internal`]: the response is malformed. The method was executed.
pub async fn response<C: Codec, T: Message>(response: Response) -> Result<T, Status> {
    if response.is_method_error() {
        let message = "the method has no error, and the server answered with one";
        return Err(Status::new(Code::Internal, message));
    }
    decoded::<C, T>(response.into_body()).await
}

/// Returns the result in a response of a method with an error type.
///
/// # Errors
///
/// [`ServiceError`]
pub async fn response_or_error<C: Codec, T: Message, E: Message>(
    response: Response,
) -> Result<T, ServiceError<E>> {
    if response.is_method_error() {
        return Err(ServiceError::Method(decoded::<C, E>(response.into_body()).await?));
    }
    Ok(decoded::<C, T>(response.into_body()).await?)
}

/// Returns the stream in a response.
///
/// # Errors
///
/// [`Code::Internal`]: the response is malformed.
#[allow(clippy::unused_async, reason = "generated code awaits all four kinds of responses")]
pub async fn stream<C: Codec, T: Message>(response: Response) -> Result<Streaming<T>, Status> {
    if response.is_method_error() {
        let message = "the method has no error, and the server answered with one";
        return Err(Status::new(Code::Internal, message));
    }
    Ok(Streaming::of_parts::<C>(Parts::new(response.into_body())))
}

/// Returns the stream in a response of a method with an error type.
///
/// # Errors
///
/// [`ServiceError`]
pub async fn stream_or_error<C: Codec, T: Message, E: Message>(
    response: Response,
) -> Result<Streaming<T>, ServiceError<E>> {
    if response.is_method_error() {
        return Err(ServiceError::Method(decoded::<C, E>(response.into_body()).await?));
    }
    Ok(stream::<C, T>(response).await?)
}

async fn decoded<C: Codec, T: Message>(body: Body) -> Result<T, Status> {
    read::<C, T>(&body.into_bytes(MAX_PART).await?)
}

/// Returns the value in a response.
pub(super) fn read<C: Codec, T: Message>(bytes: &[u8]) -> Result<T, Status> {
    C::decode(bytes).map_err(|error| {
        Status::new(Code::Internal, format!("the server's response is malformed: {error}"))
    })
}
