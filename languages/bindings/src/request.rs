//! A request at a server in another language.

use crate::failure::Failure;
use crate::polled;
use apus::{Bytes, Payload};
use std::net::SocketAddr;
use std::pin::pin;
use tokio::runtime::Handle;

/// A request that has arrived, to be answered once. If it is dropped without a reply, its client
/// gets an error that says so.
#[derive(Debug)]
pub struct Request {
    kind: Kind,
}

/// The kind of endpoint that the request arrived at.
#[derive(Debug)]
enum Kind {
    Blocking(apus::Request),
    Events(apus::tokio::Request, Handle),
}

impl Request {
    pub(crate) const fn blocking(request: apus::Request) -> Self {
        Self { kind: Kind::Blocking(request) }
    }

    pub(crate) fn events(request: apus::tokio::Request, runtime: &Handle) -> Self {
        Self { kind: Kind::Events(request, runtime.clone()) }
    }

    /// Returns the client's message.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        match &self.kind {
            Kind::Blocking(request) => request.payload(),
            Kind::Events(request, _) => request.payload(),
        }
    }

    /// Returns the client's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        match &self.kind {
            Kind::Blocking(request) => request.peer_addr(),
            Kind::Events(request, _) => request.peer_addr(),
        }
    }

    /// Sends the response, which may be empty. Waits for room if a limit is reached.
    ///
    /// # Errors
    ///
    /// The client does not wait any more, the response is rejected, or the endpoint is closed.
    pub fn reply(self, response: Payload) -> Result<(), Failure> {
        match self.kind {
            Kind::Blocking(request) => request.reply(response)?,
            Kind::Events(request, runtime) => {
                let mut reply = pin!(request.reply(response));
                polled::once(reply.as_mut()).unwrap_or_else(|| runtime.block_on(reply))?;
            }
        }
        Ok(())
    }
}
