//! A channel: calls to one server.

use super::exchange::{answer, complete};
use super::outgoing::PreparedCall;
use super::pull::ResponseStream;
use super::push::Pusher;
use crate::body::Body;
use crate::code::Code;
use crate::handler::BoxFuture;
use crate::limits::PART;
use crate::message::{Request, Response};
use crate::metadata::Metadata;
use crate::status::Status;
use apus::Execution;
use apus::tokio::Endpoint;
use bytes::Bytes;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Instant;
use tower_service::Service;

/// Sends the calls of any number of tasks to one server, over an endpoint that other channels may
/// share.
///
/// Clones are cheap. There is no connection: a channel is an endpoint and an address. It is a
/// [`tower_service::Service`], so retries, hedging, balancing and any tower layer can wrap it.
#[derive(Clone, Debug)]
pub struct Channel {
    endpoint: Endpoint,
    to: SocketAddr,
}

impl Channel {
    /// Returns a channel to the server at `to`.
    #[must_use]
    pub const fn new(endpoint: Endpoint, to: SocketAddr) -> Self {
        Self { endpoint, to }
    }

    /// Opens an endpoint for calls and returns a channel to the server at `to`.
    ///
    /// # Errors
    ///
    /// [`apus::BindError`]: the endpoint cannot be opened, or the caller is outside of a tokio
    /// runtime with IO and time enabled.
    pub async fn connect(to: SocketAddr) -> Result<Self, apus::BindError> {
        Ok(Self::new(Endpoint::client().await?, to))
    }

    /// Returns the server's address.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.to
    }

    /// Returns the endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and waits for its response, or for the start of a streamed response.
    /// Dropping the future or the response cancels the call.
    ///
    /// The call ends at the earlier of the request's deadline and the deadline of the call that the
    /// current task serves; without either, after the endpoint's
    /// [timeout](apus::EndpointBuilder::call_timeout).
    ///
    /// # Errors
    ///
    /// [`Status`], from the server, the network, or this process; [`Status::execution`] returns
    /// whether the request may have been executed.
    pub fn call(
        &self,
        mut request: Request,
    ) -> impl Future<Output = Result<Response, Status>> + Send + use<> {
        let channel = self.clone();
        async move {
            let gathered = request.body_mut().gather(PART).await;
            // Nothing has been sent yet.
            gathered.map_err(|status| status.with_execution(Execution::NotExecuted))?;
            let open = !request.body().is_complete();
            let outgoing = PreparedCall::new(&mut request)?;
            if open {
                // Boxed: most requests are not streams, and their futures stay small.
                return Box::pin(channel.call_open(outgoing, request)).await;
            }
            let PreparedCall { payload, options, signature, deadline } = outgoing;
            let message = channel.endpoint.call_with(channel.to, payload, options).await?;
            match channel.read(message, signature, deadline)? {
                Begun::Complete(response) => Ok(response),
                Begun::Stream(stream, metadata) => Box::pin(streamed(stream, metadata)).await,
            }
        }
    }

    /// Makes a call whose request is a stream.
    async fn call_open(self, outgoing: PreparedCall, request: Request) -> Result<Response, Status> {
        let PreparedCall { payload, options, signature, deadline } = outgoing;
        let channel = self.clone();
        let beginning = async move {
            let message = channel.endpoint.call_with(channel.to, payload, options).await?;
            channel.read(message, signature, deadline)
        };
        // A separate task: if this future is dropped before the server has named the stream, the
        // task drops the stream once it is named, which cancels it.
        let (mut stream, metadata) =
            match tokio::spawn(beginning).await.map_err(|error| lost(&error))?? {
                Begun::Complete(response) => return Ok(response),
                Begun::Stream(stream, metadata) => (stream, metadata),
            };
        let pusher = Pusher::new(self.endpoint, self.to, stream.id(), deadline);
        stream.keep(tokio::spawn(pusher.run(request.into_body())));
        streamed(stream, metadata).await
    }

    /// Reads the response to a CALL with this signature.
    fn read(
        &self,
        message: Bytes,
        signature: u32,
        deadline: Option<Instant>,
    ) -> Result<Begun, Status> {
        let (answer, data) = answer(message, signature)?;
        let Some(stream) = answer.more else {
            return Ok(Begun::Complete(complete(answer, data)));
        };
        let mut stream = ResponseStream::new(self.endpoint.clone(), self.to, stream, deadline);
        stream.add(data);
        Ok(Begun::Stream(stream, answer.head))
    }
}

/// The response to a CALL.
enum Begun {
    /// The complete response.
    Complete(Response),
    /// The name of a stream, and the metadata of the response if it has started.
    Stream(ResponseStream, Option<Metadata>),
}

/// Waits for the start of a streamed response.
async fn streamed(
    mut stream: ResponseStream,
    metadata: Option<Metadata>,
) -> Result<Response, Status> {
    let metadata = match metadata {
        Some(metadata) => metadata,
        None => stream.head().await?,
    };
    Ok(Response::new(Body::stream(stream)).with_metadata(metadata))
}

/// Returns the status of a call whose task ended with the runtime.
fn lost(error: &tokio::task::JoinError) -> Status {
    let message = format!("the call's task ended: {error}");
    Status::new(Code::Cancelled, message).with_execution(Execution::Unknown)
}

impl Service<Request> for Channel {
    type Response = Response;
    type Error = Status;
    type Future = BoxFuture<Result<Response, Status>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        Box::pin(Self::call(self, request))
    }
}
