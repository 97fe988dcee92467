//! A request at a server, and the right to reply to it.

use crate::engine::core::{Arrived, Core};
use crate::engine::medium::Origin;
use crate::engine::shard::Shard;
use crate::engine::tracer::stage;
use crate::engine::wait_target::Room;
use crate::error::ReplyError;
use apus_proto::{CommandError, Payload, Refusal};
use apus_trace::{Event, Rpc};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;

/// A request that has arrived, to be answered once with [`Request::reply`].
///
/// If it is dropped without a reply, the client gets an error that says so.
#[derive(Debug)]
#[must_use = "reply to it; dropped, it fails at the client"]
pub struct Request {
    pub(crate) pending: PendingReply,
    payload: Bytes,
    from: SocketAddr,
}

/// The right and the duty to reply.
pub(crate) struct PendingReply {
    pub(crate) shard: Arc<Shard>,
    /// `None` once the request is answered, or its client has gone.
    origin: Option<Origin>,
    /// The RPC in the time trace, if it is traced.
    pub(crate) rpc: Option<Rpc>,
}

impl std::fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PendingReply").field(&self.origin).finish()
    }
}

impl Request {
    pub(crate) fn new(shard: Arc<Shard>, arrived: Arrived) -> Self {
        let Arrived { origin, from, payload, rpc } = arrived;
        stage(rpc, Event::RequestReturned, payload.len());
        Self { pending: PendingReply { shard, origin: Some(origin), rpc }, payload, from }
    }

    /// Returns the client's message.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Takes the client's message out of the request without a copy, to send it back or to keep it.
    /// [`Request::payload`] is empty afterwards.
    #[must_use]
    pub fn take_payload(&mut self) -> Bytes {
        std::mem::take(&mut self.payload)
    }

    /// Returns the client's address.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.from
    }

    /// Sends the response. Waits for room if a limit of the configuration is reached.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client does not wait any more, the response is empty or too long, or the
    /// endpoint is closed.
    pub fn reply(mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        self.pending.reply(payload.into())
    }
}

impl PendingReply {
    /// Replies, waiting for room if necessary.
    fn reply(&mut self, mut payload: Payload) -> Result<(), ReplyError> {
        let Self { shard, origin, rpc } = self;
        stage(*rpc, Event::Reply, payload.len());
        let mut core = shard.lock();
        loop {
            let seen = core.room_changes();
            match try_reply(&mut core, origin, *rpc, &mut payload) {
                Err(ReplyError::Rejected(error)) if error.is_back_pressure() => {
                    core = shard.wait_for(core, &Room { seen }, None).0;
                }
                result => return result,
            }
        }
    }

    /// Replies if there is room; otherwise the call may be repeated. Also returns the number of times
    /// that room had become available before the attempt, for [`Room`].
    #[cfg(feature = "tokio")]
    pub(crate) fn try_reply(&mut self, payload: &mut Payload) -> (u64, Result<(), ReplyError>) {
        let mut core = self.shard.lock();
        (core.room_changes(), try_reply(&mut core, &mut self.origin, self.rpc, payload))
    }
}

/// Replies to `origin`, which is `None` afterwards unless the reply may be tried again.
fn try_reply(
    core: &mut Core,
    origin: &mut Option<Origin>,
    traced: Option<Rpc>,
    payload: &mut Payload,
) -> Result<(), ReplyError> {
    if let Some(closed) = &core.closed {
        return Err(closed.clone().into());
    }
    let replied = match origin {
        None => Err(CommandError::UnknownRpc),
        Some(Origin::Local(pair, id)) => {
            let length = payload.len();
            let replied = core.reply_locally(pair, *id, payload);
            replied.inspect(|()| stage(traced, Event::LocalSent, length))
        }
        Some(Origin::Network(rpc)) => {
            let rpc = *rpc;
            let now = core.command_time();
            let length = payload.len();
            let replied = core.transport.reply(now, rpc, std::mem::take(payload));
            replied
                .map(|()| {
                    stage(traced, Event::Queued, length);
                    core.after_reply();
                })
                .map_err(|rejected| {
                    *payload = rejected.payload;
                    rejected.reason
                })
        }
    };
    match replied {
        Ok(()) => {
            *origin = None;
            Ok(())
        }
        Err(CommandError::UnknownRpc) => {
            *origin = None;
            Err(ReplyError::ClientGone)
        }
        Err(error) => Err(ReplyError::Rejected(error)),
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let Some(origin) = self.origin.take() else { return };
        let mut core = self.shard.lock();
        match origin {
            Origin::Local(pair, id) => core.abandon_locally(&pair, id, Refusal::Abandoned),
            Origin::Network(rpc) => {
                let now = core.command_time();
                // Fails if the client has vanished meanwhile: no peer to notify.
                if core.transport.abandon(now, rpc).is_ok() {
                    core.after_command();
                }
            }
        }
    }
}
