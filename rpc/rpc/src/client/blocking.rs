//! A channel for threads: calls to one server, without a runtime.

use super::exchange::{answer, complete};
use super::outgoing::PreparedCall;
use crate::code::Code;
use crate::message::{Request, Response};
use crate::status::Status;
use apus::{Endpoint, Execution};
use std::net::SocketAddr;

/// Sends the calls of any number of threads to one server, over a blocking endpoint that other
/// channels may share.
///
/// The calling thread receives its own response, and needs no runtime. Streams and the layers for
/// several servers need a [`Channel`](crate::Channel).
///
/// Clones are cheap.
#[derive(Clone, Debug)]
pub struct BlockingChannel {
    endpoint: Endpoint,
    to: SocketAddr,
}

impl BlockingChannel {
    /// Returns a channel to the server at `to`.
    #[must_use]
    pub const fn new(endpoint: Endpoint, to: SocketAddr) -> Self {
        Self { endpoint, to }
    }

    /// Opens an endpoint for calls and returns a channel to the server at `to`.
    ///
    /// # Errors
    ///
    /// [`apus::BindError`]: the endpoint cannot be opened.
    pub fn connect(to: SocketAddr) -> Result<Self, apus::BindError> {
        Ok(Self::new(Endpoint::client()?, to))
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

    /// Sends a request and waits for its response. The call ends at the earlier of the request's
    /// and the [context's](crate::Context::sync_scope) deadline; without either, after the
    /// endpoint's [timeout](apus::EndpointBuilder::call_timeout).
    ///
    /// # Errors
    ///
    /// [`Status`], from the server, the network, or this process; [`Status::execution`] returns
    /// whether the request may have been executed. [`Code::Unimplemented`]: the request or the
    /// response is a stream.
    pub fn call(&self, mut request: Request) -> Result<Response, Status> {
        if !request.body().is_complete() {
            let message = "a blocking channel sends no streams: use a `Channel`";
            return Err(Status::not_executed(Code::Unimplemented, message));
        }
        let PreparedCall { payload, options, signature, .. } = PreparedCall::new(&mut request)?;
        let message = self.endpoint.call_with(self.to, payload, options)?;
        let (answer, data) = answer(message, signature)?;
        if answer.more.is_some() {
            // The server ends it when no PULL arrives.
            let message =
                "the response is a stream, which a blocking channel does not read: use a `Channel`";
            return Err(
                Status::new(Code::Unimplemented, message).with_execution(Execution::Executed)
            );
        }
        Ok(complete(answer, data))
    }
}
