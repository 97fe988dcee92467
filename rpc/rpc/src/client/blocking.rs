//! A channel for threads: calls to one server, without a runtime.

use super::exchange::{answer, complete};
use super::outgoing::Outgoing;
use crate::code::Code;
use crate::message::{Request, Response};
use crate::status::Status;
use apus::{Endpoint, Execution};
use std::net::SocketAddr;

/// Sends the calls of any number of threads to one server, over a blocking endpoint that other channels may share.
///
/// The thread that calls receives its own response, and needs no runtime. Streams, and the layers for several servers, need a
/// [`Channel`](crate::Channel).
///
/// A clone is cheap.
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

    /// Opens an endpoint for calls, and returns a channel to the server at `to`.
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

    /// Sends a request and waits for its response. The call ends with the request's deadline or that of the
    /// [context](crate::Context::sync_scope), whichever is sooner; without either, with the endpoint's
    /// [timeout](apus::EndpointBuilder::call_timeout).
    ///
    /// # Errors
    ///
    /// [`Status`], from the server, the network, or this process; [`Status::execution`] says whether the request may
    /// have been executed. [`Code::Unimplemented`]: the request or the response is a stream.
    pub fn call(&self, mut request: Request) -> Result<Response, Status> {
        if !request.body().is_complete() {
            let message = "a blocking channel sends no streams: use a `Channel`";
            return Err(Status::not_executed(Code::Unimplemented, message));
        }
        let Outgoing { payload, options, signature, .. } = Outgoing::new(&mut request)?;
        let message = self.endpoint.call_with(self.to, payload, options)?;
        let (answer, data) = answer(message, signature)?;
        if answer.more.is_some() {
            // The server ends it when nothing is pulled.
            let message =
                "the response is a stream, which a blocking channel does not read: use a `Channel`";
            return Err(
                Status::new(Code::Unimplemented, message).with_execution(Execution::Executed)
            );
        }
        Ok(complete(answer, data))
    }
}
