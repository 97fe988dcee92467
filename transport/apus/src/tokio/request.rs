//! A request at an async server.

use crate::engine::poll::Room;
use crate::engine::runners::asynchronous::WaitFor;
use crate::engine::shard::Shard;
use crate::engine::state::IncomingRequest;
use crate::engine::tracer::stage;
use crate::error::ReplyError;
use crate::request::{Pending, PendingReply};
use apus_proto::Payload;
use apus_trace::Event;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A request that has arrived, to be answered once; dereferences to [`crate::Request`], which has
/// the payload and the client's address.
///
/// If it is dropped without a reply, the client gets a corresponding error.
#[derive(Debug)]
#[must_use = "reply to it; dropped, it fails at the client"]
pub struct Request {
    request: crate::Request,
}

impl Deref for Request {
    type Target = crate::Request;

    fn deref(&self) -> &crate::Request {
        &self.request
    }
}

impl DerefMut for Request {
    fn deref_mut(&mut self) -> &mut crate::Request {
        &mut self.request
    }
}

impl Pending for Request {
    fn pending(&mut self) -> &mut PendingReply {
        &mut self.request.pending
    }
}

impl Request {
    pub(super) fn new(shard: Arc<Shard>, arrived: IncomingRequest) -> Self {
        Self { request: crate::Request::new(shard, arrived) }
    }

    /// Sends the response, which may be empty. Waits for room if a limit of the configuration is
    /// reached.
    ///
    /// A response longer than `max_message` is rejected, and the client gets an error that states
    /// this; use [`Request::reply_or_keep`] to send another response instead.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client does not wait any more, the response is rejected, or the endpoint
    /// is closed.
    pub async fn reply(mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        self.reply_or_keep(payload).await
    }

    /// Sends the response as [`Request::reply`] does, and leaves the request with the caller: after
    /// [`ReplyError::Rejected`], or if the future is dropped, it may be replied to again.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client does not wait any more, the response is rejected, or the endpoint
    /// is closed.
    pub async fn reply_or_keep(&mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        let mut payload = payload.into();
        let pending = &mut self.request.pending;
        stage(pending.rpc, Event::Reply, payload.len());
        loop {
            match pending.try_reply(&mut payload) {
                (seen, Err(ReplyError::Rejected(error))) if error.is_back_pressure() => {
                    WaitFor::new(&pending.shard, Room { seen }).await;
                }
                (_, result) => return result,
            }
        }
    }
}
