//! A request at a server in another language.

use crate::failure::Failure;
use crate::polled;
use apus::{Bytes, Payload};
use std::net::SocketAddr;
use std::pin::pin;
use tokio::runtime::Handle;

/// A received request, to be answered once. If it is dropped without a reply, its client gets an
/// error that states this.
#[derive(Debug)]
pub struct Request {
    kind: RequestKind,
}

/// The kind of endpoint that received the request.
#[derive(Debug)]
enum RequestKind {
    Blocking(apus::Request),
    Events(apus::tokio::Request, Handle),
}

impl Request {
    pub(crate) const fn blocking(request: apus::Request) -> Self {
        Self { kind: RequestKind::Blocking(request) }
    }

    pub(crate) fn events(request: apus::tokio::Request, runtime: &Handle) -> Self {
        Self { kind: RequestKind::Events(request, runtime.clone()) }
    }

    /// Returns the client's message.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        match &self.kind {
            RequestKind::Blocking(request) => request.payload(),
            RequestKind::Events(request, _) => request.payload(),
        }
    }

    /// Returns the client's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        match &self.kind {
            RequestKind::Blocking(request) => request.peer_addr(),
            RequestKind::Events(request, _) => request.peer_addr(),
        }
    }

    /// Sends the response, which may be empty. Waits for room if a limit is reached.
    ///
    /// # Errors
    ///
    /// The client no longer waits, the response is rejected, or the endpoint is closed.
    pub fn reply(self, response: Payload) -> Result<(), Failure> {
        match self.kind {
            RequestKind::Blocking(request) => request.reply(response)?,
            RequestKind::Events(request, runtime) => {
                let mut reply = pin!(request.reply(response));
                polled::once(reply.as_mut()).unwrap_or_else(|| runtime.block_on(reply))?;
            }
        }
        Ok(())
    }
}
