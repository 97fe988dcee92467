//! Calls on their way into the engine: one, or many under one lock. An attempt is repeated while
//! there is no room.
//!
//! A batch of up to 64 messages is made under one lock, and sent messages are removed from the
//! caller's vector: its memory serves the next batch, and after an error it holds exactly the
//! unsent ones. A guard that keeps the lock, or an iterator, would run the application's code under
//! it. A failed call ends the batch (no room, closed); a failed reply does not, since only its
//! client has gone.

use crate::address::destination;
use crate::call::{CallId, CallOptions, OutgoingCall};
use crate::engine::core::{Core, Deadline, NewCall, finish};
use crate::engine::shard::Locked;
use crate::error::CallError;
use apus_proto::Payload;
use apus_trace::recorder;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The message to send, with its options. It outlives a failed attempt, so that the caller can
/// repeat it when there is room.
pub(crate) struct Submission<W> {
    what: W,
    options: CallOptions,
    /// Time of the application's call, in ticks of the trace, if it had to wait; otherwise 0.
    called: u64,
}

/// Content of a [`Submission`].
pub(crate) trait Submit {
    type Output;

    /// Sends as much as there is room for.
    fn submit(
        &mut self,
        core: &mut Locked<'_>,
        options: CallOptions,
        called: u64,
    ) -> Result<Self::Output, CallError>;
}

/// A single call.
pub(crate) struct Single {
    to: SocketAddr,
    payload: Payload,
    /// The cookie of a call whose completion any thread may receive; `None` if the caller waits for
    /// it.
    shared: Option<u64>,
}

impl Submit for Single {
    type Output = CallId;

    #[inline]
    fn submit(
        &mut self,
        core: &mut Locked<'_>,
        options: CallOptions,
        called: u64,
    ) -> Result<CallId, CallError> {
        let to = destination(self.to).map_err(CallError::Rejected)?;
        let (payload, cookie) = (&mut self.payload, self.shared);
        let CallOptions { deadline, idempotent, .. } = options;
        let key =
            core.call(NewCall { to, payload, deadline, idempotent, cookie, called }, &mut None)?;
        Ok(CallId { key, shard: core.shard_index() })
    }
}

/// Calls, or replies, that are sent under one lock. Chosen by us: other threads wait for about 20
/// µs.
pub(crate) const AT_ONCE: usize = 64;

/// The first [`AT_ONCE`] calls, which are removed when they are sent. If one fails, it is the first
/// that is left.
impl Submit for &mut Vec<OutgoingCall> {
    type Output = ();

    fn submit(
        &mut self,
        core: &mut Locked<'_>,
        options: CallOptions,
        called: u64,
    ) -> Result<(), CallError> {
        let CallOptions { deadline, idempotent, .. } = options;
        let mut sent = 0;
        let mut result = Ok(());
        core.begin_batch();
        let mut left = self.iter_mut().take(AT_ONCE).peekable();
        while result.is_ok()
            && let Some(first) = left.peek()
        {
            let server = first.to;
            let to = match destination(server) {
                Ok(to) => to,
                Err(error) => {
                    result = Err(CallError::Rejected(error));
                    break;
                }
            };
            // Calls to a peer of this host leave in one batch of the pair.
            let pair = core.pair_to(to);
            let mut batch = pair.as_deref().and_then(|pair| pair.batch().ok());
            while let Some(OutgoingCall { request, cookie, .. }) =
                left.next_if(|it| it.to == server)
            {
                let (payload, cookie) = (request, Some(*cookie));
                let new = NewCall { to, payload, deadline, idempotent, cookie, called };
                if let Err(error) = core.call(new, &mut batch) {
                    result = Err(error);
                    break;
                }
                sent += 1;
            }
            finish(&mut batch);
        }
        core.end_batch();
        self.drain(..sent);
        result
    }
}

impl Submission<Single> {
    pub(crate) const fn new(
        to: SocketAddr,
        payload: Payload,
        options: CallOptions,
        shared: Option<u64>,
    ) -> Self {
        Self { what: Single { to, payload, shared }, options, called: 0 }
    }
}

impl<'a> Submission<&'a mut Vec<OutgoingCall>> {
    pub(crate) const fn many(calls: &'a mut Vec<OutgoingCall>, options: CallOptions) -> Self {
        Self { what: calls, options, called: 0 }
    }
}

impl<W: Submit> Submission<W> {
    /// Makes the call, unless its deadline has passed. After an error due to [lack of
    /// room](CallError::is_back_pressure) it may be tried again. `called`: since when the thread has waited for the lock, in ticks of the trace;
    /// 0 if it has not.
    #[inline]
    pub(crate) fn submit(
        &mut self,
        core: &mut Locked<'_>,
        called: u64,
    ) -> Result<W::Output, CallError> {
        self.called = self.called.max(called);
        // Every path to every server passes here, in both faces.
        core.check_deadline(self.options.deadline)?;
        self.what.submit(core, self.options, self.called)
    }

    /// Notes that the call waits for room, which counts towards its duration in the trace and
    /// towards the endpoint's `timeout`. Returns until when it may wait.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<Instant> {
        if self.called == 0 {
            self.called = recorder::stamp();
        }
        if self.options.deadline == Deadline::Endpoint {
            self.options = self.options.timeout(timeout);
        }
        self.options.deadline.exact()
    }

    /// Returns whether to wait for room and try again after this error.
    pub(crate) const fn should_wait(&self, error: &CallError) -> bool {
        error.is_back_pressure() && !self.options.no_wait
    }
}

/// Cancels a call. Returns whether it was still running.
pub(crate) fn cancel(core: &mut Core, call: CallId) -> bool {
    core.cancel(call.key)
}
