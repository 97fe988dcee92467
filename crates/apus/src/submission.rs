//! A call on its way into the engine, which is repeated while there is no room.

use crate::call::{CallId, CallOptions};
use crate::engine::core::{Core, Deadline, NewCall};
use crate::engine::shard::Locked;
use crate::error::CallError;
use apus_proto::Payload;
use apus_trace::recorder;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A call to be made. It outlives a failed attempt, so that the caller can repeat it when there is
/// room.
pub(crate) struct Submission {
    pub(crate) to: SocketAddr,
    pub(crate) payload: Payload,
    pub(crate) options: CallOptions,
    /// The cookie of a call whose completion any thread may receive; `None` if the caller waits for
    /// it.
    pub(crate) shared: Option<u64>,
    /// Time at which the application called, in ticks of the trace, if the call had to wait;
    /// otherwise 0.
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
    #[inline]
    pub(crate) fn submit(&mut self, core: &mut Locked<'_>) -> Result<CallId, CallError> {
        let CallOptions { deadline, idempotent, .. } = self.options;
        let key = core.call(NewCall {
            to: self.to,
            payload: &mut self.payload,
            deadline,
            idempotent,
            cookie: self.shared,
            called: self.called,
        })?;
        Ok(CallId { key, shard: core.shard_index() })
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
