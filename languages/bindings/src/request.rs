//! A request at a server in another language.

use crate::failure::Failure;
use crate::patience::INTERVAL;
use crate::polled;
use apus::{Bytes, Payload, ReplyError};
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

    /// Sends the response, which may be empty. Waits for room if a limit is reached, and calls
    /// `keep_waiting` after each [`INTERVAL`]. After an error the request may be replied to again,
    /// unless its client no longer waits.
    ///
    /// # Errors
    ///
    /// The client no longer waits, the response is rejected, the wait ended, or the endpoint is
    /// closed.
    pub fn reply(
        &mut self,
        response: Payload,
        keep_waiting: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(), Failure> {
        match (&mut self.kind, keep_waiting) {
            (RequestKind::Blocking(request), None) => request.reply_or_keep(response)?,
            (RequestKind::Blocking(request), Some(keep_waiting)) => {
                request.reply_interruptible(response, INTERVAL, keep_waiting)?;
            }
            (RequestKind::Events(request, runtime), keep_waiting) => {
                let mut reply = pin!(request.reply_or_keep(response));
                let replied = polled::once(reply.as_mut()).or_else(|| match keep_waiting {
                    None => Some(runtime.block_on(reply)),
                    Some(keep_waiting) => polled::block_on(runtime, reply, keep_waiting),
                });
                replied.unwrap_or(Err(ReplyError::GivenUp))?;
            }
        }
        Ok(())
    }
}
