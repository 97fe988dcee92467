//! The link to the server: session, outstanding calls, log of changes, and output.
//!
//! Sends requests. The handlers of responses are above this module.

pub(super) mod calls;
pub(super) mod log;
pub(super) mod output;
pub(super) mod session;

use std::time::Duration;

use crate::wire::{Request, SessionRequest, frame};

use super::interface::effect::{ClientCall, ClientEffect, Clock, OpToken};
use calls::{Calls, Purpose};
use log::Log;
use output::Output;
use session::{ClientSettings, Session, SessionState};

/// State for sending requests.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) session: Session,
    pub(super) calls: Calls,
    pub(super) log: Log,
    pub(super) output: Output,
}

impl Link {
    pub(super) fn new(settings: ClientSettings, now: Duration) -> Self {
        Self {
            session: Session::new(settings, now),
            calls: Calls::default(),
            log: Log::default(),
            output: Output::default(),
        }
    }

    /// Sends a request of the session.
    pub(super) fn call(
        &mut self,
        clock: &Clock,
        purpose: Purpose,
        request: SessionRequest,
    ) -> ClientCall {
        let call = self.calls.add(clock.now, purpose, Some(request));
        self.send(clock, call);
        call
    }

    /// Adds an operation to the waiters of the call with a purpose. Makes the call if there is
    /// none.
    pub(super) fn wait_for(
        &mut self,
        clock: &Clock,
        token: OpToken,
        purpose: Purpose,
        request: impl FnOnce() -> SessionRequest,
    ) {
        let call = match self.calls.find(&purpose) {
            Some(call) => call,
            None => self.call(clock, purpose, request()),
        };
        self.calls.add_waiter(call, token);
    }

    /// Emits a call, for the first time or again.
    fn send(&mut self, clock: &Clock, call: ClientCall) {
        let session = self.session.number.unwrap_or_default();
        let Some(outstanding) = self.calls.get_mut(call) else { return };
        (outstanding.sent_at, outstanding.retry_at) = (clock.now, None);
        let mut payload = Vec::new();
        let message = match &outstanding.purpose {
            Purpose::Greet => Request::Hello(self.session.hello()),
            Purpose::Batch(number) => {
                let Some(sealed) = self.log.sealed(*number) else { return };
                payload.clone_from(&sealed.payload);
                Request::Of { session, request: SessionRequest::Batch(sealed.batch.clone()) }
            }
            _ => {
                let Some(request) = outstanding.request.clone() else { return };
                Request::Of { session, request }
            }
        };
        self.session.last_sent = clock.now;
        self.output.counters.calls += 1;
        self.output.counters.calls_by_kind.add(message.kind() as u8);
        let header = frame::encode(&message);
        let kind = message.kind();
        self.output.push(ClientEffect::Call { call, kind, header, payload });
    }

    /// Repeats calls whose retry time has passed.
    pub(super) fn send_due(&mut self, clock: &Clock) {
        for call in self.calls.due(clock.now) {
            self.send(clock, call);
        }
    }

    /// Sends batches that the window permits.
    pub(super) fn send_batches(&mut self, clock: &Clock) {
        if self.session.state != SessionState::Live {
            return;
        }
        while let Some(sealed) = self.log.next_to_send() {
            let purpose = Purpose::Batch(sealed.batch.number);
            let call = self.calls.add(clock.now, purpose, None);
            sealed.call = Some(call);
            self.output.counters.batches += 1;
            self.send(clock, call);
        }
    }

    /// Sends a Hello, unless one is outstanding: it starts a session, or resumes it with a new
    /// range of inode numbers.
    pub(super) fn greet(&mut self, clock: &Clock) {
        if self.calls.find(&Purpose::Greet).is_none() {
            let call = self.calls.add(clock.now, Purpose::Greet, None);
            self.send(clock, call);
        }
    }

    /// Returns to the state before a greeting and drops all calls. Returns the operations that
    /// waited for them.
    pub(super) fn start_greeting(&mut self, clock: &Clock) -> Vec<OpToken> {
        self.session.state = SessionState::Greeting;
        self.session.greet_at = clock.now;
        self.session.greeting += 1;
        let unclaimed = self.calls.unclaimed();
        self.session.to_reclaim.extend(unclaimed);
        self.log.forget_calls();
        self.calls.drop_all()
    }
}
