//! What does an async server get?

use crate::engine::asynchronous::WaitFor;
use crate::engine::core::Arrived;
use crate::engine::shard::Shard;
use crate::engine::tracer::stage;
use crate::engine::wait_target::Room;
use crate::error::ReplyError;
use apus_proto::Payload;
use apus_trace::Event;
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;

/// A request that has arrived, to be answered once.
///
/// Dropped without a reply, it is let go: the client gets an error that says so.
#[derive(Debug)]
#[must_use = "reply to it; dropped, it fails at the client"]
pub struct Request {
    inner: crate::Request,
}

impl Request {
    pub(super) fn new(shard: Arc<Shard>, arrived: Arrived) -> Self {
        Self { inner: crate::Request::new(shard, arrived) }
    }

    /// The client's message.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        self.inner.payload()
    }

    /// Takes the client's message: to send it back or to keep it, without a copy. Nothing is left
    /// behind.
    #[must_use]
    pub fn take_payload(&mut self) -> Bytes {
        self.inner.take_payload()
    }

    /// The client's address.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.inner.peer_addr()
    }

    /// Answers. Waits for room if too many bytes wait to be sent.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client has gone, or the reply is empty or too long.
    pub async fn reply(mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        let mut payload = payload.into();
        let pending = &mut self.inner.inner;
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
