//! Submission of a call: checks the limits, selects shared memory or the network, and traces the call.

use crate::call::{CallId, CallOptions};
use crate::engine::calls::Abandoned;
use crate::engine::core::Core;
use crate::error::CallError;
use apus_proto::{Call, CommandError, Payload};
use apus_trace::clock::ticks;
use apus_trace::recorder;
use std::net::SocketAddr;

/// A call to be made. It outlives a failed attempt, so that the caller can repeat it when there is room.
pub(crate) struct Submission {
    pub(crate) to: SocketAddr,
    pub(crate) payload: Payload,
    pub(crate) options: CallOptions,
    /// The cookie of a call whose completion any thread may receive; `None` if the caller waits for it.
    pub(crate) shared: Option<u64>,
    /// Time at which the application called, in ticks of the trace, if the call had to wait; otherwise 0.
    pub(crate) called: u64,
}

impl Submission {
    pub(crate) const fn new(
        to: SocketAddr,
        payload: Payload,
        options: CallOptions,
        shared: Option<u64>,
    ) -> Self {
        Self { to, payload, options, shared, called: 0 }
    }

    /// Makes the call. After an error due to [lack of room](CallError::is_back_pressure) it may be
    /// tried again.
    pub(crate) fn submit(&mut self, core: &mut Core) -> Result<CallId, CallError> {
        if let Some(closed) = &core.closed {
            return Err(closed.clone().into());
        }
        let calls = (core.calls.len() + core.completions.len()) as u64;
        if calls >= core.transport.config().max_client_rpcs() {
            // CAP-12: completions that the application has not received count as calls.
            core.want_fewer_calls();
            return Err(CallError::Rejected(CommandError::TooManyRpcs));
        }
        let length = self.payload.len();
        match core.call_locally(self.to, &mut self.payload, self.options, self.shared) {
            Some(Ok(key)) => {
                let cookie = key.cookie();
                if let Some(rpc) = core.tracer.called_locally(cookie, self.to, self.called, length)
                {
                    core.calls.trace(key, rpc);
                }
                return Ok(CallId { key });
            }
            Some(Err(error)) => return Err(CallError::Rejected(error)),
            None => {}
        }
        let now = core.command_time();
        let traced = core.transport.selects_next_call(self.to);
        if traced && self.called == 0 {
            self.called = ticks();
        }
        let key = core.calls.next_key();
        let call = Call {
            to: self.to,
            payload: std::mem::take(&mut self.payload),
            cookie: key.cookie(),
            deadline: self.options.deadline.map(|at| core.clock.convert(at)),
            idempotent: self.options.idempotent,
        };
        let rpc = core.transport.call(now, call).map_err(|rejected| {
            self.payload = rejected.payload;
            CallError::Rejected(rejected.reason)
        })?;
        let inserted = core.calls.insert(rpc, self.shared);
        debug_assert_eq!(inserted, key, "the cookie names the call");
        if traced && let Some(rpc) = core.tracer.called(&core.transport, rpc, self.called, length) {
            core.calls.trace(key, rpc);
        }
        core.after_command();
        Ok(CallId { key })
    }

    /// Notes that the call waits for room, which counts towards its duration in the trace.
    pub(crate) fn wait(&mut self) {
        if self.called == 0 {
            self.called = recorder::stamp();
        }
    }

    /// Returns whether to wait for room and try again after this error.
    pub(crate) const fn should_wait(&self, error: &CallError) -> bool {
        error.is_back_pressure() && !self.options.no_wait
    }
}

/// Cancels a call. Returns whether it was still running.
pub(crate) fn cancel(core: &mut Core, call: CallId) -> bool {
    match core.calls.abandon(call.key) {
        Some(Abandoned::Running(rpc)) => {
            let now = core.command_time();
            // The transport knows the RPC for as long as the call has a slot.
            let cancelled = core.transport.cancel(now, rpc).is_ok();
            core.after_cancel();
            cancelled
        }
        Some(Abandoned::RunningLocally { pair, held }) => {
            core.cancel_locally(call.key, pair, held);
            core.after_cancel();
            true
        }
        Some(Abandoned::Ended(bytes)) => {
            core.transport.payload_consumed(bytes);
            core.call_ended();
            false
        }
        None => false,
    }
}
