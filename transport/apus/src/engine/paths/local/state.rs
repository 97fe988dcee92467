//! State of an endpoint's calls and requests through shared memory.

use super::clients::Clients;
use super::cork::{CorkedMessage, CorkedMessages};
use super::outstanding_calls::OutstandingCalls;
use super::path::{ConnectStart, Path};
use super::routes::Routes;
use super::served_requests::ServedRequests;
use crate::engine::state::{Calls, Key};
use apus_local::{Credentials, Pair};
use apus_proto::Instant;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The group of the core that belongs to shared memory.
#[derive(Debug)]
pub(crate) struct LocalState {
    pub(super) path: Path,
    pub(super) routes: Routes,
    pub(super) outstanding: OutstandingCalls,
    pub(super) clients: Clients,
    pub(super) served: ServedRequests,
    corked: CorkedMessages,
    /// When to check whether the peers have read everything, if a thread waits for that: peers do
    /// not report it.
    drain_check_at: Option<Instant>,
}

/// Time between two checks whether peers have read everything.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_micros(200);

impl LocalState {
    pub(crate) fn new(path: Path) -> Self {
        Self {
            path,
            routes: Routes::default(),
            outstanding: OutstandingCalls::default(),
            clients: Clients::default(),
            served: ServedRequests::default(),
            corked: CorkedMessages::default(),
            drain_check_at: None,
        }
    }

    /// Returns the time of the next work that needs no arrival.
    pub(crate) fn next_due(&self) -> Instant {
        self.outstanding.next_deadline().min(self.drain_check_at.unwrap_or(Instant::NEVER))
    }

    /// Returns the credentials of the client of a pair; `None` if the pair has ended.
    pub(crate) fn credentials(&mut self, pair: u64) -> Option<Credentials> {
        self.clients.get(pair).map(|pair| pair.peer().credentials)
    }

    /// Sets the deadline of a call that had none. Has no effect if the call has ended.
    pub(crate) fn set_deadline(&mut self, key: Key, deadline: Instant, calls: &mut Calls) {
        if let Some(call) = calls.local(key) {
            debug_assert!(call.deadline.is_none(), "calls with a deadline have no timeout");
            call.deadline = Some(deadline);
            self.outstanding.set_deadline(key, deadline);
        }
    }

    /// Returns whether peers have read everything and answered all calls. If not, checks again
    /// soon.
    pub(crate) fn is_drained(&mut self, now: Instant) -> bool {
        let drained = self.outstanding.is_empty()
            && self.corked.is_empty()
            && self.path.local.pairs().iter().all(|pair| pair.is_drained());
        if !drained {
            self.drain_check_at.get_or_insert(now + DRAIN_CHECK_INTERVAL);
        }
        drained
    }

    /// Ends a check whether peers have read everything.
    pub(super) fn expire_drain_check(&mut self, now: Instant) {
        self.drain_check_at = self.drain_check_at.filter(|at| *at > now);
    }

    /// Returns whether there are addresses to connect to.
    pub(crate) const fn has_connects(&self) -> bool {
        self.routes.has_connects()
    }

    /// Returns the addresses to connect to, if there are any; once.
    pub(crate) fn take_connects(&mut self) -> Option<Vec<SocketAddr>> {
        self.routes.take_connects()
    }

    /// Records the start of a connection to `to`.
    pub(crate) fn connecting(&mut self, to: SocketAddr, start: ConnectStart, now: Instant) {
        self.routes.connecting(to, start, now);
    }

    /// Returns whether as many messages are held back as may be.
    pub(super) const fn is_cork_full(&self) -> bool {
        self.corked.is_full()
    }

    /// Holds a message back, and sends all if they are enough.
    pub(super) fn hold_back(&mut self, message: CorkedMessage, calls: &mut Calls) {
        self.corked.push(message);
        if self.corked.is_full() {
            self.flush(calls);
        }
    }

    /// Returns whether messages are held back, and a call has a deadline.
    pub(crate) fn holds_calls_with_deadlines(&self) -> bool {
        !self.corked.is_empty() && self.outstanding.next_deadline() < Instant::NEVER
    }

    /// Sends held-back messages that have room.
    pub(crate) fn flush(&mut self, calls: &mut Calls) {
        self.corked.flush(calls);
    }

    /// Returns the pair for calls to `to`; `None` stands for the network.
    pub(crate) fn pair_to(&mut self, to: SocketAddr, now: Instant) -> Option<Arc<Pair>> {
        self.routes.pair(to, now, &self.path.local).cloned()
    }

    /// Returns the pair with this number, which has carried requests, if it has not ended.
    pub(crate) fn pair_of_client(&mut self, number: u64) -> Option<Arc<Pair>> {
        self.clients.get(number).cloned()
    }

    /// Returns the pair with this number, if it has not ended.
    pub(super) fn pair(&self, number: u64) -> Option<Arc<Pair>> {
        self.path.local.pairs().into_iter().find(|pair| pair.number() == number)
    }
}
