//! Commands of the application: call, reply, cancel, abandon, cork.

use super::root::Core;
use crate::engine::paths::local::LocalCallOptions;
use crate::engine::state::{Abandoned, ClientState, Key, Origin, Taken};
use crate::engine::tracer::stage;
use crate::error::{CallError, ReplyError};
use apus_local::{Pair, SendBatch};
use apus_proto::{Call, CommandError, Instant, Payload, Refusal};
use apus_trace::clock::ticks;
use apus_trace::{Event, Rpc};
use std::net::SocketAddr;
use std::sync::Arc;

/// When a call fails that has not completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// When the timeout of the endpoint has passed.
    #[default]
    Endpoint,
    /// Never.
    Never,
    /// At this time.
    At(std::time::Instant),
}

impl Deadline {
    /// Returns the time of an exact deadline.
    pub(crate) const fn exact(self) -> Option<std::time::Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::Endpoint | Self::Never => None,
        }
    }
}

/// A call to be made.
#[derive(Debug)]
pub(crate) struct NewCall<'a> {
    pub(crate) to: SocketAddr,
    /// Taken if the call is accepted.
    pub(crate) payload: &'a mut Payload,
    pub(crate) deadline: Deadline,
    /// Whether executing the request twice is harmless.
    pub(crate) idempotent: bool,
    /// The cookie of a call whose completion any thread may receive; `None` if the caller waits for
    /// it.
    pub(crate) cookie: Option<u64>,
    /// Time of the application's call, in ticks of the trace, if the call had to wait; otherwise 0.
    pub(crate) called: u64,
}

/// Ends a batch, if there is one.
pub(crate) fn finish(batch: &mut Option<SendBatch<'_>>) {
    if let Some(batch) = batch.take() {
        // A violation of the protocol by the peer is reported with the end of the pair.
        let _ = batch.finish();
    }
}

impl Core {
    /// Makes a call, through shared memory if there is a pair with the peer, otherwise over the
    /// network; in `batch` if there is one, whose pair is the peer's.
    ///
    /// # Errors
    ///
    /// [`CallError`]: the request was not sent, and the payload is still the caller's.
    pub(crate) fn call(
        &mut self,
        mut new: NewCall<'_>,
        batch: &mut Option<SendBatch<'_>>,
    ) -> Result<Key, CallError> {
        self.check_open()?;
        if self.open_calls() >= self.transport().config().max_client_rpcs() {
            // CAP-12: completions that the application has not received count as calls.
            self.room.want_fewer_calls();
            return Err(CallError::Rejected(CommandError::TooManyRpcs));
        }
        let called = match self.call_locally(batch.as_mut(), &mut new) {
            Some(called) => called,
            None => {
                // The call over the network may take the lock of the pair.
                finish(batch);
                self.call_over_network(new)
            }
        };
        called.map_err(CallError::Rejected)
    }

    /// Checks that the deadline of a call has not passed.
    ///
    /// # Errors
    ///
    /// The call fails as not executed, because nothing is sent.
    #[inline]
    pub(crate) fn check_deadline(&self, deadline: Deadline) -> Result<(), CallError> {
        let has_passed = match deadline {
            Deadline::Endpoint => self.call_timeout.is_zero(),
            Deadline::Never => false,
            // The last reading of the clock may be older than the deadline.
            Deadline::At(at) => at <= std::time::Instant::now(),
        };
        if has_passed { Err(CallError::too_late()) } else { Ok(()) }
    }

    /// Returns the pair that calls to `to` use now, to send several of them in one batch of it;
    /// `None` stands for the network. Messages held back by a cork leave before them.
    pub(crate) fn pair_to(&mut self, to: SocketAddr) -> Option<Arc<Pair>> {
        self.flush_local();
        let now = self.time.now();
        self.local.as_mut()?.pair_to(to, now)
    }

    /// Returns the pair with this number, to send several replies in one batch of it. Messages held
    /// back by a cork leave before them.
    pub(crate) fn pair_of_client(&mut self, number: u64) -> Option<Arc<Pair>> {
        self.flush_local();
        self.local.as_mut()?.pair_of_client(number)
    }

    /// Makes a call through shared memory; `None` if it must go over the network.
    fn call_locally(
        &mut self,
        batch: Option<&mut SendBatch<'_>>,
        new: &mut NewCall<'_>,
    ) -> Option<Result<Key, CommandError>> {
        let made = self.interval_of(new.deadline);
        let mut local = self.local_context()?;
        let length = new.payload.len();
        let deadline = new.deadline.exact().map(|at| local.time.clock().convert(at));
        let NewCall { to, idempotent, cookie, called, .. } = *new;
        let options = LocalCallOptions { deadline, made, idempotent, cookie };
        let sent = local.call(to, batch, new.payload, options)?;
        if let Ok(key) = sent {
            let tracer = &mut self.observation.tracer;
            if let Some(rpc) = tracer.local_call_made(key.cookie(), to, called, length) {
                self.calls.trace(key, rpc);
            }
        }
        Some(sent)
    }

    fn call_over_network(&mut self, new: NewCall<'_>) -> Result<Key, CommandError> {
        let NewCall { to, payload, deadline, idempotent, cookie, mut called } = new;
        let length = payload.len();
        let now = self.command_time();
        let key = self.calls.next_key();
        let exact = deadline.exact().map(|at| self.time.clock().convert(at));
        let mut traced = false;
        let on_traced = &mut || {
            traced = true;
            called = if called > 0 { called } else { ticks() };
        };
        let rpc = self.network.send_payload(payload, |transport, payload| {
            let cookie = key.cookie();
            let call = Call { to, payload, cookie, deadline: exact, idempotent };
            transport.call_observed(now, call, on_traced)
        })?;
        let made = self.interval_of(deadline);
        let inserted = self.calls.insert(rpc, made, cookie);
        debug_assert_eq!(inserted, key, "the cookie names the call");
        let tracer = &mut self.observation.tracer;
        if traced && let Some(rpc) = tracer.call_made(self.network.transport(), rpc, called, length)
        {
            self.calls.trace(key, rpc);
        }
        self.after_command();
        Ok(key)
    }

    /// Returns the timeout interval of a call with this deadline; `None` if the timeout does not
    /// apply to it.
    fn interval_of(&mut self, deadline: Deadline) -> Option<u32> {
        match deadline {
            Deadline::Endpoint => self.call_timeout.call_made(&self.time),
            Deadline::Never | Deadline::At(_) => None,
        }
    }

    /// Cancels a call. Returns whether it was still running.
    pub(crate) fn cancel(&mut self, key: Key) -> bool {
        match self.calls.abandon(key) {
            Some(Abandoned::Running(rpc)) => {
                let now = self.command_time();
                // The protocol keeps the RPC for as long as the call has a slot.
                let cancelled = self.network.transport_mut().cancel(now, rpc).is_ok();
                self.after_cancel();
                cancelled
            }
            Some(Abandoned::RunningLocally { pair, call }) => {
                if let Some(mut local) = self.local_context() {
                    local.cancel(key, pair, &call);
                }
                self.after_cancel();
                true
            }
            Some(Abandoned::Ended(taken)) => {
                if let Taken::Message(bytes) = taken {
                    self.network.transport_mut().payload_consumed(bytes);
                }
                self.room.call_ended(&mut self.polling, &mut self.wakes);
                false
            }
            None => false,
        }
    }

    /// Called after a call was cancelled: there is room for another one, and possibly no
    /// acknowledgement is outstanding.
    fn after_cancel(&mut self) {
        self.after_command();
        self.room.call_ended(&mut self.polling, &mut self.wakes);
        if self.is_drained() {
            // The leader may wait for that, too, and is not among the waiters.
            self.polling.request_check();
            self.drain.notify(&mut self.wakes);
        }
    }

    /// Replies to a request, in `batch` if there is one, whose pair is the request's. `origin` is
    /// `None` afterwards unless the reply may be tried again; `traced` is its RPC in the time
    /// trace.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]. After an error due to lack of room the payload is still the caller's.
    pub(crate) fn reply(
        &mut self,
        origin: &mut Option<Origin>,
        traced: Option<Rpc>,
        payload: &mut Payload,
        batch: Option<&mut SendBatch<'_>>,
    ) -> Result<(), ReplyError> {
        self.check_open()?;
        let replied = match origin {
            None => Err(CommandError::UnknownRpc),
            Some(Origin::Local(pair, id)) => {
                let length = payload.len();
                let replied = match self.local_context() {
                    Some(mut local) => local.reply(*pair, *id, payload, batch),
                    None => Err(CommandError::UnknownRpc),
                };
                replied.inspect(|()| stage(traced, Event::LocalSent, length))
            }
            Some(Origin::Network(rpc)) => {
                let now = self.command_time();
                let length = payload.len();
                let replied = self.network.send_payload(payload, |transport, payload| {
                    transport.reply(now, *rpc, payload)
                });
                replied.inspect(|()| {
                    stage(traced, Event::Queued, length);
                    self.after_reply();
                })
            }
        };
        if let Some(origin) = origin
            && !matches!(&replied, Err(error) if error.is_back_pressure())
        {
            self.watches.forget(*origin);
        }
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

    /// Drops a request without a reply: the call fails at its client for this reason.
    pub(crate) fn abandon(&mut self, origin: Origin, why: Refusal) {
        self.watches.forget(origin);
        match origin {
            Origin::Local(pair, id) => {
                if let Some(local) = &mut self.local {
                    local.abandon(pair, id, why);
                }
            }
            Origin::Network(rpc) => {
                let now = self.command_time();
                // Fails if the client has vanished: there is no peer to notify.
                if self.network.transport_mut().abandon_for(now, rpc, why).is_ok() {
                    self.after_command();
                }
            }
        }
    }

    /// Watches the client of a request.
    pub(crate) fn watch_client(&mut self, origin: Option<Origin>) -> Arc<ClientState> {
        let Some(origin) = origin else { return self.watches.watch_pair(0, true) };
        let is_open = match origin {
            Origin::Network(rpc) => {
                let now = self.command_time();
                self.network.transport_mut().watch_client(now, rpc)
            }
            Origin::Local(pair, id) => {
                self.local.as_mut().is_some_and(|local| local.is_waiting(pair, id))
            }
        };
        self.watches.watch_request(origin, !(is_open && self.closed.is_none()))
    }

    /// Watches the process at the other end of a pair.
    pub(crate) fn watch_pair(&mut self, pair: u64) -> Arc<ClientState> {
        let is_open = self.local.as_mut().is_some_and(|local| local.pair_of_client(pair).is_some());
        self.watches.watch_pair(pair, !(is_open && self.closed.is_none()))
    }

    /// Holds messages back until [`Core::uncork`].
    pub(crate) const fn cork(&mut self) {
        self.cork.insert();
    }

    /// Ends a [`Core::cork`], and sends the messages that it held back.
    pub(crate) fn uncork(&mut self) {
        self.cork.remove();
        self.transmit_held_back();
    }

    /// Starts a batch of calls or replies under one lock: their messages leave together.
    pub(crate) fn begin_batch(&mut self) {
        if self.cork.holds_messages() && !self.cork.is_corked() {
            // Otherwise the batch would have the time of a message that was left to another thread
            // or task.
            self.time.read_clock();
        }
        self.cork.insert();
    }

    /// Returns the time of a command. Commands that a cork holds back have the time of the first of
    /// them, or of the last reading of the clock.
    fn command_time(&mut self) -> Instant {
        if self.cork.holds_messages() && self.cork.is_corked() {
            return self.time.now();
        }
        self.time.read_clock()
    }
}
