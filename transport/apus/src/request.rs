//! A request at a server, and the right to reply to it.

use crate::client_watch::ClientWatch;
use crate::engine::core::finish;
use crate::engine::poll::Room;
use crate::engine::shard::Shard;
use crate::engine::state::{IncomingRequest, Origin};
use crate::engine::tracer::stage;
use crate::error::ReplyError;
use crate::submission::AT_ONCE;
use apus_local::Credentials;
use apus_proto::{CommandError, Payload, Refusal};
use apus_trace::{Event, Rpc};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request that has arrived, to be answered once with [`Request::reply`].
///
/// Any thread may reply at any time, and requests may be answered in any order. If a request is
/// dropped without a reply, its client gets a corresponding error. In a child of a fork, replying
/// fails and dropping does nothing.
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
    /// Reason that the client gets if the request is dropped.
    refusal: Refusal,
    /// The RPC in the time trace, if it is traced.
    pub(crate) rpc: Option<Rpc>,
}

impl std::fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PendingReply").field(&self.origin).finish()
    }
}

impl Request {
    #[inline(always)]
    pub(crate) fn new(shard: Arc<Shard>, arrived: IncomingRequest) -> Self {
        let IncomingRequest { origin, from, payload, rpc, .. } = arrived;
        stage(rpc, Event::RequestReturned, payload.len());
        Self { pending: PendingReply::new(shard, origin, rpc), payload, from }
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

    /// Returns the identity that the client proved in the handshake for the keys that sealed the
    /// request. `None` if the endpoint is not sealed, if the request arrived through shared memory,
    /// where the system has checked its user, or if the client has gone.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn peer_identity(&self) -> Option<Arc<apus_seal::Identity>> {
        let Some(Origin::Network(rpc)) = &self.pending.origin else { return None };
        let shard = &self.pending.shard;
        shard.owner().check().ok()?;
        let session = shard.lock().transport().session_of_request(*rpc)?;
        shard.sealing().identity(self.from, session)
    }

    /// Watches the client from now on: the result tells when it does not wait for the reply any
    /// more, because it has cancelled the call, its deadline has passed, its process has ended, or
    /// its host does not answer. For work that takes long: a client of this host is known to have
    /// ended at once; one over the network is asked now and then, and is gone after seconds without
    /// an answer. In the kernel profile only cancellations are known.
    ///
    /// ```no_run
    /// # fn step() -> Option<u64> { None }
    /// # fn serve(request: apus::Request) -> Result<(), apus::ReplyError> {
    /// let client = request.watch_client();
    /// while let Some(_) = step() {
    ///     if client.is_gone() {
    ///         return Ok(());
    ///     }
    /// }
    /// request.reply("done")
    /// # }
    /// ```
    pub fn watch_client(&self) -> ClientWatch {
        let PendingReply { shard, origin, .. } = &self.pending;
        if shard.owner().is_current() {
            ClientWatch::new(shard.lock().watch_client(*origin))
        } else {
            ClientWatch::gone()
        }
    }

    /// Watches the client's process, if the request arrived through shared memory: the result tells
    /// when the process has ended, also after the reply. `None` over the network, where processes
    /// are not known.
    #[must_use]
    pub fn watch_process(&self) -> Option<ClientWatch> {
        let pair = self.pending.client()?;
        if !self.pending.shard.owner().is_current() {
            return Some(ClientWatch::gone());
        }
        Some(ClientWatch::new(self.pending.shard.lock().watch_pair(pair)))
    }

    /// Returns the process that has sent the request, as the kernel named it when the process
    /// connected. `None` if the request arrived through the network: an address of this host then
    /// belongs to the user that [`udp_owner`](crate::local::udp_owner) returns.
    ///
    /// # Errors
    ///
    /// [`ReplyError::ClientGone`]: the process has disconnected.
    pub fn peer_credentials(&self) -> Result<Option<Credentials>, ReplyError> {
        match self.pending.origin {
            Some(Origin::Network(_)) => Ok(None),
            Some(Origin::Local(pair, _)) => {
                let credentials = self.pending.shard.lock().credentials(pair);
                credentials.map(Some).ok_or(ReplyError::ClientGone)
            }
            None => Err(ReplyError::ClientGone),
        }
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
    pub fn reply(mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        self.reply_or_keep(payload)
    }

    /// Sends the response as [`Request::reply`] does, and leaves the request with the caller: after
    /// [`ReplyError::Rejected`] it may be replied to again, for example with a shorter response.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use apus::{Endpoint, ReplyError};
    ///
    /// let (server, client) = (Endpoint::bind("127.0.0.1:0")?, Endpoint::client()?);
    /// client.send(server.local_addr(), "everything", 0)?;
    /// let mut request = server.recv_request()?;
    /// if let Err(ReplyError::Rejected(why)) = request.reply_or_keep(vec![0; 100 << 20]) {
    ///     request.reply(format!("in parts, please: {why}"))?;
    /// }
    /// assert!(client.recv_completion()?.result?.starts_with(b"in parts"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReplyError`]: the client does not wait any more, the response is rejected, or the endpoint
    /// is closed.
    pub fn reply_or_keep(&mut self, payload: impl Into<Payload>) -> Result<(), ReplyError> {
        self.pending.reply_while(payload.into(), Duration::MAX, || true)
    }
}

impl PendingReply {
    fn new(shard: Arc<Shard>, origin: Origin, rpc: Option<Rpc>) -> Self {
        Self { shard, origin: Some(origin), refusal: Refusal::Abandoned, rpc }
    }

    /// Returns the number of the pair with the client; `None` stands for the network.
    const fn client(&self) -> Option<u64> {
        match self.origin {
            Some(Origin::Local(pair, _)) => Some(pair),
            _ => None,
        }
    }

    /// Replies, waiting for room if necessary; calls `keep_waiting` each time that it has waited
    /// for `interval`.
    pub(crate) fn reply_while(
        &mut self,
        mut payload: Payload,
        interval: Duration,
        mut keep_waiting: impl FnMut() -> bool,
    ) -> Result<(), ReplyError> {
        let Self { shard, origin, refusal, rpc } = self;
        shard.owner().check()?;
        stage(*rpc, Event::Reply, payload.len());
        let mut core = shard.lock();
        loop {
            let seen = core.room_changes();
            match core.reply(origin, *rpc, &mut payload, None) {
                Err(ReplyError::Rejected(error)) if error.is_back_pressure() => {
                    let until = Instant::now().checked_add(interval);
                    let (again, room) = shard.wait_for(core, &Room { seen }, until);
                    core = again;
                    if room.is_none() && !core.is_closed() && until.is_some() {
                        drop(core);
                        let keeps_waiting = keep_waiting();
                        // It may have forked.
                        shard.owner().check()?;
                        if !keeps_waiting {
                            return Err(ReplyError::GivenUp);
                        }
                        core = shard.lock();
                    }
                }
                result => {
                    note_rejection(refusal, &result);
                    return result;
                }
            }
        }
    }

    /// Replies if there is room; otherwise the call may be repeated. Also returns the number of
    /// times that room had become available before the attempt, for [`Room`].
    #[cfg(feature = "tokio")]
    pub(crate) fn try_reply(&mut self, payload: &mut Payload) -> (u64, Result<(), ReplyError>) {
        if let Err(error) = self.shard.owner().check() {
            return (0, Err(error.into()));
        }
        let mut core = self.shard.lock();
        let seen = core.room_changes();
        let result = core.reply(&mut self.origin, self.rpc, payload, None);
        note_rejection(&mut self.refusal, &result);
        (seen, result)
    }
}

/// A request of the blocking or of the async endpoint.
pub(crate) trait Pending {
    /// Returns the right to reply to it.
    fn pending(&mut self) -> &mut PendingReply;
}

impl Pending for Request {
    fn pending(&mut self) -> &mut PendingReply {
        &mut self.pending
    }
}

/// Replies that are sent together.
pub(crate) struct Replies<'a, R> {
    left: &'a mut Vec<(R, Payload)>,
    result: Result<(), ReplyError>,
}

impl<'a, R: Pending> Replies<'a, R> {
    pub(crate) fn new(replies: &'a mut Vec<(R, Payload)>) -> Self {
        for (request, payload) in &mut *replies {
            stage(request.pending().rpc, Event::Reply, payload.len());
        }
        Self { left: replies, result: Ok(()) }
    }

    /// Sends replies and removes them. If there is no room for one, returns the shard that must
    /// have room, and the change of it to wait for. Returns `None` when none is left.
    pub(crate) fn reply(&mut self) -> Option<(Arc<Shard>, Room)> {
        loop {
            let shard = self.left.first_mut()?.0.pending().shard.clone();
            if let Err(error) = shard.owner().check() {
                // In a child of a fork, no request is answered or refused.
                self.left.clear();
                self.result = Err(error.into());
                return None;
            }
            let mut core = shard.lock();
            let room = Room { seen: core.room_changes() };
            let (mut settled, mut is_full) = (0, false);
            core.begin_batch();
            let end = self.left.len().min(AT_ONCE);
            while !is_full && settled < end {
                let first = self.left[settled].0.pending();
                if !Arc::ptr_eq(&first.shard, &shard) {
                    break;
                }
                // Replies to a client of this host leave in one batch of its pair.
                let client = first.client();
                let pair = client.and_then(|client| core.pair_of_client(client));
                let mut batch = pair.as_deref().and_then(|pair| pair.batch().ok());
                for (request, payload) in &mut self.left[settled..end] {
                    let pending = request.pending();
                    if pending.client() != client || !Arc::ptr_eq(&pending.shard, &shard) {
                        break;
                    }
                    let replied =
                        core.reply(&mut pending.origin, pending.rpc, payload, batch.as_mut());
                    is_full = matches!(&replied, Err(ReplyError::Rejected(error)) if error.is_back_pressure());
                    if is_full {
                        break;
                    }
                    note_rejection(&mut pending.refusal, &replied);
                    // Without a copy if it is a success: the processor would wait until the record
                    // has left its store buffer.
                    if let Err(error) = replied
                        && self.result.is_ok()
                    {
                        self.result = Err(error);
                    }
                    settled += 1;
                }
                finish(&mut batch);
            }
            core.end_reply_batch();
            // A request that was not answered is dropped, and takes the lock.
            drop(core);
            self.left.drain(..settled);
            if is_full {
                return Some((shard, room));
            }
        }
    }

    /// Returns the first error.
    pub(crate) fn result(self) -> Result<(), ReplyError> {
        self.result
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        // In a child of a fork it is still the parent's to answer.
        if let Some(origin) = self.origin.take()
            && self.shard.owner().is_current()
        {
            self.shard.lock().abandon(origin, self.refusal);
        }
    }
}

/// Sets the reason that the client gets if no other reply follows a rejected one.
const fn note_rejection(refusal: &mut Refusal, result: &Result<(), ReplyError>) {
    if let Err(ReplyError::Rejected(CommandError::TooLarge { .. })) = result {
        *refusal = Refusal::ResponseTooLarge;
    }
}
