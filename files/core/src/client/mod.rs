//! The client: a cache of nodes under leases, and an ordered log of changes.
//!
//! An operation is attempted from its beginning each time an event that it waits for has occurred,
//! and changes no state before all that it needs is available. So an operation takes effect at one
//! instant, under leases that are all valid at that instant (FS-1).
//!
//! # Invariants
//!
//! - **FSCLIENT-1** Every operation gets exactly one reply, unless the client is dropped.
//! - **FSCLIENT-2** A cached attribute, name or byte is used only while the session is live and the
//!   node's lease permits it.
//! - **FSCLIENT-3** A change is made only under exclusive leases of all nodes that it changes.
//! - **FSCLIENT-4** A recall is answered when all changes of its nodes are applied at the server,
//!   and the kernel has dropped its cache of them.
//! - **FSCLIENT-5** A grant on a node is void if the node was recalled after the request was sent.
//! - **FSCLIENT-6** No message of the server makes the client panic or allocate without bound.
//! - **FSCLIENT-7** A lent lease is returned with the changes of the operations that waited for it,
//!   or when these have ended without a change. Until the server has applied them, the client
//!   neither uses the lease nor acquires another one of the node.
//! - **FSCLIENT-8** If the server grants a lock to an operation that a signal has ended, the client
//!   returns the lock.
//!
//! # Rationale
//!
//! An operation has no state of its own: an attempt requests what is missing, or changes everything
//! at once. A state machine per operation would need about thirty times three to six states, each
//! of which handles a recall, the end of the session and an interrupt; async functions would hide
//! the same states. Leases of one operation are requested together, so that two clients do not take
//! them from each other without end. While the kernel drops its pages for a recall, operations
//! continue, because a reader may hold the pages for which the kernel waits.

mod core;
mod events;
mod interface;
mod link;
mod locks;
mod loss;
mod metrics;
mod nodes;
mod operations;
mod recalls;
mod status;
mod waiting;

use std::time::Duration;

use crate::wire::{Errno, SessionRequest};
use bytes::Bytes;

use core::Core;
use events::callbacks::handle_callback;
use events::responses::handle_response;
use events::schedule::{self, run_due};
use link::Link;
use link::calls::Purpose;
use locks::table::Locks;
use loss::Losses;
use nodes::cache::Cache;
use nodes::directories::Directories;
use nodes::eviction::Eviction;
use operations::{Stop, attempt, withdraw};
use recalls::recall::{end_recalls, handle_notified, return_loans};
use recalls::table::Recalls;
use waiting::{Pending, Waiting};

pub use interface::effect::{
    ClientCall, ClientEffect, Clock, Invalidation, LostChange, LostChanges, NotifyToken, OpToken,
    ServerCallback,
};
pub use interface::kind::OperationKind;
pub use interface::operation::{
    AttributeChange, Caller, DirectoryEntry, NewTime, NodeEntry, Operation, Place, Reply,
};
pub use link::session::{ClientSettings, Lost};
pub use metrics::ClientMetrics;
pub use status::ClientStatus;

/// The client. See the [module](self).
#[derive(Debug)]
pub struct Client {
    core: Core,
    directories: Directories,
    eviction: Eviction,
}

impl Client {
    /// Returns a client whose first effect is a Hello to the server.
    pub fn new(settings: ClientSettings, clock: &Clock) -> Self {
        let core = Core {
            link: Link::new(settings, clock.now),
            cache: Cache::default(),
            waiting: Waiting::default(),
            recalls: Recalls::default(),
            locks: Locks::default(),
            losses: Losses::default(),
        };
        let (directories, eviction) = (Directories::default(), Eviction::default());
        let mut client = Self { core, directories, eviction };
        client.poll(clock);
        client
    }

    /// Starts an operation. Its reply is an effect, at once or later.
    pub fn submit(&mut self, clock: &Clock, token: OpToken, caller: Caller, operation: Operation) {
        let counters = &mut self.core.link.output.counters;
        counters.operations += 1;
        counters.operations_by_kind.add(operation.kind() as u8);
        if let Operation::Forget { node, count } = operation {
            self.core.cache.forget_references(node, count);
            return;
        }
        let pending = Pending { caller, operation, response: None, since: clock.now };
        self.core.waiting.insert(token, pending);
        self.run(clock);
        let is_hit = !self.core.waiting.contains(token);
        self.core.link.output.counters.cache_hits += u64::from(is_hit);
    }

    /// Ends an operation with `EINTR`, unless it has ended (FS-16).
    pub fn interrupt(&mut self, clock: &Clock, token: OpToken) {
        let Core { link, cache, waiting, locks, .. } = &mut self.core;
        if let Some(pending) = waiting.remove(token) {
            withdraw(link, cache, locks, waiting, clock, (token, &pending.operation));
            link.output.reply(token, Err(Errno::INTR));
        }
        self.run(clock);
    }

    /// Handles the outcome of a call: the response, or `None` if the call failed.
    pub fn handle_response(&mut self, clock: &Clock, call: ClientCall, response: Option<Bytes>) {
        handle_response(&mut self.core, clock, call, response);
        self.run(clock);
    }

    /// Handles a callback of the server.
    pub fn handle_callback(&mut self, clock: &Clock, callback: ServerCallback, message: Bytes) {
        handle_callback(&mut self.core, clock, callback, message);
        self.run(clock);
    }

    /// Handles the completion of an [`Invalidate`](ClientEffect::Invalidate) effect by the kernel.
    pub fn notified(&mut self, clock: &Clock, notification: NotifyToken) {
        let Core { link, cache, recalls, .. } = &mut self.core;
        handle_notified(link, cache, recalls, notification);
        self.run(clock);
    }

    /// Advances the client to `clock`.
    pub fn poll(&mut self, clock: &Clock) {
        self.run(clock);
    }

    /// Returns when [`poll`](Self::poll) must be called if no other call is made.
    pub fn next_deadline(&self) -> Option<Duration> {
        schedule::next_deadline(&self.core.link, &self.core.waiting)
    }

    /// Returns the next effect.
    pub fn take_effect(&mut self) -> Option<ClientEffect> {
        self.core.link.output.take()
    }

    /// Returns whether all changes are at the server.
    pub fn is_clean(&self) -> bool {
        self.core.link.log.waiting().0 == 0
    }

    /// Sends all changes that are not at the server, without the usual delay.
    pub fn flush(&mut self, clock: &Clock) {
        self.core.link.log.seal();
        self.run(clock);
    }

    /// Ends the session: the server takes back leases and locks. Changes that are not at the server
    /// are lost.
    pub fn close(&mut self, clock: &Clock) {
        if self.core.link.session.number.is_some() {
            self.core.link.call(clock, Purpose::Farewell, SessionRequest::Goodbye);
        }
    }

    /// Returns the number of locks that the client could not take again after a restart of the
    /// server.
    pub const fn locks_lost(&self) -> u64 {
        self.core.link.output.counters.locks_lost
    }

    /// Returns the state of the client.
    pub fn status(&self) -> ClientStatus {
        let Core { link, cache, waiting, recalls, .. } = &self.core;
        status::status(link, cache, waiting, recalls)
    }

    /// Returns counters and gauges.
    pub fn metrics(&self) -> ClientMetrics {
        metrics::metrics(self.status(), &self.core.link.output.counters)
    }

    /// Performs due actions, attempts ready operations, and sends.
    fn run(&mut self, clock: &Clock) {
        let Core { link, cache, waiting, .. } = &mut self.core;
        run_due(link, cache, waiting, clock);
        loop {
            self.attempt_ready(clock);
            let Core { link, cache, waiting, recalls, .. } = &mut self.core;
            return_loans(link, cache, recalls, waiting);
            link.send_batches(clock);
            end_recalls(link, cache, recalls, waiting, clock);
            if !waiting.is_any_ready() {
                break;
            }
        }
        self.eviction.run(&mut self.core.link, &mut self.core.cache, clock);
    }

    /// Attempts all operations that are ready.
    fn attempt_ready(&mut self, clock: &Clock) {
        while let Some((token, mut pending)) = self.core.waiting.take_ready() {
            let attempted =
                attempt(&mut self.core, &mut self.directories, clock, token, &mut pending);
            let result = match attempted {
                Ok(reply) => Ok(reply),
                Err(Stop::Fail(error)) => Err(error),
                Err(Stop::Wait) => {
                    self.core.waiting.put_back(token, pending);
                    continue;
                }
            };
            self.core.waiting.clear_own_batch(token);
            self.core.link.output.reply(token, result);
        }
    }
}
