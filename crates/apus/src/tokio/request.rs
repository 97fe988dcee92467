//! What does an async server get?

use crate::engine::asynchronous::WaitFor;
use crate::engine::core::Arrived;
use crate::engine::shard::Shard;
use crate::engine::want::Room;
use crate::error::ReplyError;
use apus_proto::Payload;
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

    /// The client's address.
    #[must_use]
    pub const fn from(&self) -> SocketAddr {
        self.inner.from()
    }

    /// Answers. Waits for room if too many bytes wait to be sent.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client has gone, or the reply is empty or too long.
    pub async fn reply(mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        let payload = payload.into();
        loop {
            let (seen, result) = self.try_reply(payload.clone());
            match result {
                Err(ReplyError::Rejected(error)) if error.is_back_pressure() => {
                    let shard = self.inner.inner.shard.clone();
                    WaitFor::new(&shard, Room { seen }).await;
                }
                result => return result,
            }
        }
    }

    /// One attempt, and how often there had been room before it.
    fn try_reply(&mut self, payload: Payload) -> (u64, Result<(), ReplyError>) {
        let shard = self.inner.inner.shard.clone();
        let mut core = shard.lock();
        let seen = core.room_changes();
        (seen, self.inner.inner.try_reply(&mut core, payload))
    }
}
