//! The client: a cache of nodes under leases, and an ordered log of changes.
//!
//! An operation is attempted from its start each time something it waited for has come: nothing changes before everything that
//! it needs is there. So an operation takes effect at one instant, under leases that are all valid at that instant (FS-1).
//!
//! # Invariants
//!
//! - **FSCLIENT-1** Every operation is answered once, unless the client is dropped.
//! - **FSCLIENT-2** A cached attribute, name or byte is used only while the session is live and the node's lease permits it.
//! - **FSCLIENT-3** A change is made only under exclusive leases of all nodes that it changes.
//! - **FSCLIENT-4** A recall is answered when all changes of its nodes are applied at the server, and the kernel has dropped what it
//!   had cached of them.
//! - **FSCLIENT-5** What a response grants on a node is void if the node was recalled after the request was sent.
//! - **FSCLIENT-6** Nothing that the server says makes the client panic or allocate without bound.
//! - **FSCLIENT-7** A lease that was lent goes back with the changes of the operations that waited for it, or when these have ended
//!   without a change. Until the server has applied them, the client neither uses the lease nor takes another one of the node.
//! - **FSCLIENT-8** A lock that the server grants to an operation that a signal has ended goes back.
//!
//! # Rationale
//!
//! An operation has no state of its own: an attempt requests what is missing, or changes everything
//! at once. A state machine per operation would need about thirty times three to six states, each
//! of which handles a recall, the end of the session and an interrupt; async functions would hide
//! the same states. Leases of one operation are requested together, so that two clients do not take
//! them from each other without end. While the kernel drops its pages for a recall, operations
//! continue, because a reader may hold the pages for which the kernel waits.

mod calls;
mod cancellation;
mod contents;
mod effect;
mod extents;
mod install;
mod kind;
mod loans;
mod log;
mod loss;
mod metrics;
mod node;
mod operation;
mod operations;
mod read_ahead;
mod recall;
mod relock;
mod renames;
mod responses;
mod session;
mod status;
mod unsettled;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use crate::held_locks::HeldLock;
use crate::wire::{
    Errno, Handle, Ino, LeaseKind, LockOwner, Name, Request, Response, SessionRequest, frame,
};
use bytes::Bytes;

use calls::{Calls, Purpose};
pub use effect::{
    ClientCall, ClientEffect, Clock, Invalidation, LostChange, LostChanges, NotifyToken, OpToken,
    ServerCallback,
};
pub use kind::OperationKind;
use loans::Loans;
use log::Log;
pub use metrics::ClientMetrics;
use node::Node;
pub use operation::{
    AttributeChange, Caller, DirectoryEntry, NewTime, NodeEntry, Operation, Place, Reply,
};
use read_ahead::ReadAhead;
use recall::Recalls;
use renames::Renames;
pub use session::{ClientSettings, Lost};
use session::{Session, SessionState};
pub use status::ClientStatus;
use unsettled::Unsettled;

/// Nodes in the cache from which unused ones are dropped.
const MOST_NODES: usize = 200_000;

/// Why an attempt did not end an operation.
enum Stop {
    /// It fails.
    Fail(Errno),
    /// It waits for something that will make it ready.
    Wait,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::Fail(error)
    }
}

type Attempt<T> = Result<T, Stop>;

/// An operation that has not ended.
#[derive(Debug)]
struct Pending {
    caller: Caller,
    operation: Operation,
    /// The response of a call that only this operation uses.
    response: Option<Response>,
    since: Duration,
}

/// An open directory: its names when it was opened or rewound.
#[derive(Debug, Default)]
struct DirectoryHandle {
    names: Option<Vec<(Bytes, Ino)>>,
}

/// The client. See the [module](self).
#[derive(Debug)]
pub struct Client {
    session: Session,
    calls: Calls,
    log: Log,
    nodes: HashMap<Ino, Box<Node>>,
    /// With more nodes than this, some are dropped.
    evict_above: usize,
    recalls: Recalls,
    read_ahead: ReadAhead,
    renames: Renames,
    loans: Loans,
    pending: BTreeMap<OpToken, Pending>,
    ready: VecDeque<OpToken>,
    /// Operations that wait until the session is live.
    for_session: Vec<OpToken>,
    /// Operations that wait until a recall has been answered.
    for_recall: Vec<OpToken>,
    /// Operations that wait until the log has room.
    for_room: Vec<OpToken>,
    /// Operations that wait until a batch is applied.
    for_batch: Vec<(u64, OpToken)>,
    /// The last batch for which each sync waits.
    syncing: HashMap<OpToken, u64>,
    /// Errors of changes that were lost, by node, until they are reported.
    lost_changes: HashMap<Ino, Errno>,
    /// Paths of nodes of which changes were not at the server when the session ended: the names are dropped before it is known whether
    /// these changes are lost.
    unsent_paths: BTreeMap<Ino, Vec<Name>>,
    /// Leases of the session that has ended, which are claimed in the next one.
    to_reclaim: Vec<(Ino, LeaseKind)>,
    /// Locks that the server has given, by file.
    locks: BTreeMap<Ino, Vec<HeldLock<LockOwner>>>,
    /// Those of the session that has ended, which are taken again after the leases.
    to_relock: Vec<(Ino, HeldLock<LockOwner>)>,
    unsettled: Unsettled,
    directories: HashMap<u64, DirectoryHandle>,
    last_handle: u64,
    last_notification: u64,
    effects: VecDeque<ClientEffect>,
    counters: status::Counters,
}

impl Client {
    /// Returns a client whose first effect is a Hello to the server.
    pub fn new(settings: ClientSettings, clock: &Clock) -> Self {
        let mut client = Self {
            session: Session::new(settings, clock.now),
            calls: Calls::default(),
            log: Log::default(),
            nodes: HashMap::new(),
            evict_above: MOST_NODES,
            recalls: Recalls::default(),
            read_ahead: ReadAhead::default(),
            renames: Renames::default(),
            loans: Loans::default(),
            pending: BTreeMap::new(),
            ready: VecDeque::new(),
            for_session: Vec::new(),
            for_recall: Vec::new(),
            for_room: Vec::new(),
            for_batch: Vec::new(),
            syncing: HashMap::new(),
            lost_changes: HashMap::new(),
            unsent_paths: BTreeMap::new(),
            to_reclaim: Vec::new(),
            locks: BTreeMap::new(),
            to_relock: Vec::new(),
            unsettled: Unsettled::default(),
            directories: HashMap::new(),
            last_handle: 0,
            last_notification: 0,
            effects: VecDeque::new(),
            counters: status::Counters::default(),
        };
        client.poll(clock);
        client
    }

    /// Begins an operation. Its reply is an effect, at once or later.
    pub fn submit(&mut self, clock: &Clock, token: OpToken, caller: Caller, operation: Operation) {
        self.counters.operations += 1;
        self.counters.operations_by_kind.add(operation.kind() as u8);
        if let Operation::Forget { node, count } = operation {
            self.forget(node, count);
            return;
        }
        let pending = Pending { caller, operation, response: None, since: clock.now };
        self.pending.insert(token, pending);
        self.ready.push_back(token);
        self.run(clock);
        self.counters.cache_hits += u64::from(!self.pending.contains_key(&token));
    }

    /// Ends an operation with `EINTR`, if it has not ended (FS-16).
    pub fn interrupt(&mut self, clock: &Clock, token: OpToken) {
        if let Some(pending) = self.pending.remove(&token) {
            self.syncing.remove(&token);
            self.withdraw(clock, token, &pending.operation);
            self.reply(token, Err(Errno::INTR));
        }
        self.run(clock);
    }

    /// Takes the outcome of a call: the response, or `None` if the call failed.
    pub fn handle_response(&mut self, clock: &Clock, call: ClientCall, response: Option<Bytes>) {
        self.take_response(clock, call, response);
        self.run(clock);
    }

    /// Takes a callback of the server.
    pub fn handle_callback(&mut self, clock: &Clock, callback: ServerCallback, message: Bytes) {
        self.take_callback(clock, callback, message);
        self.run(clock);
    }

    /// Takes the news that the kernel has dropped what it was asked to.
    pub fn notified(&mut self, clock: &Clock, notification: NotifyToken) {
        self.take_notified(clock, notification);
        self.run(clock);
    }

    /// Lets time pass.
    pub fn poll(&mut self, clock: &Clock) {
        self.run(clock);
    }

    /// Returns when [`poll`](Self::poll) is needed, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Duration> {
        let session = match self.session.state {
            SessionState::Live if self.calls.find(&Purpose::Renew).is_none() => {
                Some(self.session.renew_at())
            }
            SessionState::Live if !self.session.has_lapsed => Some(self.session.valid_until),
            SessionState::Greeting if self.calls.find(&Purpose::Greet).is_none() => {
                Some(self.session.greet_at)
            }
            _ => None,
        };
        let lost = match self.session.settings.lost {
            Lost::Error(limit) => self.session.silent_since.map(|since| since + limit),
            Lost::Wait => None,
        };
        let lost = lost.filter(|_| !self.pending.is_empty());
        [session, lost, self.log.deadline(), self.calls.deadline()].into_iter().flatten().min()
    }

    /// Returns the next effect.
    pub fn take_effect(&mut self) -> Option<ClientEffect> {
        self.effects.pop_front()
    }

    /// Returns whether everything that was changed is at the server.
    pub fn is_clean(&self) -> bool {
        self.log.waiting().0 == 0
    }

    /// Sends what is not at the server, without waiting for its time.
    pub fn flush(&mut self, clock: &Clock) {
        self.log.seal();
        self.run(clock);
    }

    /// Ends the session: the server takes back leases and locks. What is not at the server is lost.
    pub fn close(&mut self, clock: &Clock) {
        if self.session.number.is_some() {
            self.call(clock, Purpose::Farewell, SessionRequest::Goodbye);
        }
    }

    /// Attempts what is ready, and sends what is due.
    fn run(&mut self, clock: &Clock) {
        self.tend_session(clock);
        self.log.seal_if_due(clock.now);
        loop {
            while let Some(token) = self.ready.pop_front() {
                let Some(mut pending) = self.pending.remove(&token) else { continue };
                match self.attempt(clock, token, &mut pending) {
                    Ok(reply) => self.reply(token, Ok(reply)),
                    Err(Stop::Fail(error)) => self.reply(token, Err(error)),
                    Err(Stop::Wait) => {
                        self.pending.insert(token, pending);
                    }
                }
            }
            self.return_loans();
            self.send_batches(clock);
            self.tend_recalls(clock);
            if self.ready.is_empty() {
                break;
            }
        }
        self.evict(clock);
    }

    fn reply(&mut self, operation: OpToken, result: Result<Reply, Errno>) {
        self.effects.push_back(ClientEffect::Reply { operation, result });
    }

    /// Sends a request of the session.
    fn call(&mut self, clock: &Clock, purpose: Purpose, request: SessionRequest) -> ClientCall {
        let call = self.calls.add(clock.now, purpose, Some(request));
        self.send(clock, call);
        call
    }

    /// Waits for a call with a purpose, and makes it first if it is not under way.
    fn wait_for(
        &mut self,
        clock: &Clock,
        token: OpToken,
        purpose: Purpose,
        request: impl FnOnce(&mut Self) -> SessionRequest,
    ) -> Stop {
        let call = match self.calls.find(&purpose) {
            Some(call) => call,
            None => {
                let request = request(self);
                self.call(clock, purpose, request)
            }
        };
        if let Some(outstanding) = self.calls.get_mut(call) {
            outstanding.waiters.push(token);
        }
        Stop::Wait
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
        self.counters.calls += 1;
        self.counters.calls_by_kind.add(message.kind() as u8);
        let header = frame::encode(&message);
        self.effects.push_back(ClientEffect::Call { call, kind: message.kind(), header, payload });
    }

    /// Sends batches that the window permits.
    fn send_batches(&mut self, clock: &Clock) {
        if self.session.state != SessionState::Live {
            return;
        }
        while let Some(sealed) = self.log.next_to_send() {
            let purpose = Purpose::Batch(sealed.batch.number);
            let call = self.calls.add(clock.now, purpose, None);
            sealed.call = Some(call);
            self.counters.batches += 1;
            self.send(clock, call);
        }
    }

    /// Greets, renews, sends again, and gives up, as time demands.
    fn tend_session(&mut self, clock: &Clock) {
        for call in self.calls.due(clock.now) {
            self.send(clock, call);
        }
        match self.session.state {
            SessionState::Greeting
                if clock.now >= self.session.greet_at
                    && self.calls.find(&Purpose::Greet).is_none() =>
            {
                let call = self.calls.add(clock.now, Purpose::Greet, None);
                self.send(clock, call);
            }
            SessionState::Live
                if clock.now >= self.session.renew_at()
                    && self.calls.find(&Purpose::Renew).is_none() =>
            {
                self.call(clock, Purpose::Renew, SessionRequest::Renew);
            }
            _ => {}
        }
        if self.session.state == SessionState::Live
            && clock.now >= self.session.valid_until
            && !self.session.has_lapsed
        {
            self.session.has_lapsed = true;
            let pages = self.nodes.values().filter(|node| node.kernel_data);
            let pages = pages.map(|node| Invalidation::Node { node: node.ino(), data: true });
            let pages: Vec<_> = pages.collect();
            self.invalidate(pages);
        }
        if let (Lost::Error(limit), Some(since)) =
            (self.session.settings.lost, self.session.silent_since)
            && clock.now.saturating_sub(since) >= limit
        {
            self.fail_waiting(clock, limit);
        }
    }

    /// Fails operations that have waited for the server for too long.
    fn fail_waiting(&mut self, clock: &Clock, limit: Duration) {
        let late = self.pending.iter();
        let late = late.filter(|(_, pending)| clock.now.saturating_sub(pending.since) >= limit);
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.pending.remove(&token);
            self.reply(token, Err(Errno::TIMEDOUT));
        }
    }

    /// Drops references of the kernel.
    fn forget(&mut self, node: Ino, count: u64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.references = node.references.saturating_sub(count);
        }
    }

    /// Returns a node.
    fn node(&self, ino: Ino) -> Result<&Node, Errno> {
        self.nodes.get(&ino).map(Box::as_ref).ok_or(Errno::STALE)
    }

    fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&ino).map(Box::as_mut).ok_or(Errno::STALE)
    }

    fn handle(&self, ino: Ino) -> Result<Handle, Errno> {
        Ok(self.node(ino)?.handle)
    }

    /// Drops clean nodes to which nothing refers, when there are too many, and returns their leases.
    fn evict(&mut self, clock: &Clock) {
        if self.nodes.len() <= self.evict_above || self.session.state != SessionState::Live {
            return;
        }
        let applied = self.log.applied();
        let parents: HashSet<Ino> = self.nodes.values().filter_map(|node| node.parent).collect();
        let unused = self.nodes.values().filter(|node| {
            !node.is_in_use()
                && !node.is_dirty(applied)
                && node.recall.is_none()
                && node.ino() != Ino::ROOT
                && !(node.is_directory() && parents.contains(&node.ino()))
        });
        let unused: Vec<Ino> = unused.map(|node| node.ino()).take(MOST_NODES / 10).collect();
        for nodes in unused.chunks(crate::wire::limits::MAX_NODES) {
            let mut leases = Vec::new();
            for ino in nodes {
                let Some(node) = self.nodes.remove(ino) else { continue };
                self.calls.void(*ino);
                if node.lease > LeaseKind::None {
                    leases.push((node.handle, LeaseKind::None));
                }
            }
            if !leases.is_empty() {
                self.call(clock, Purpose::Farewell, SessionRequest::Release { leases });
            }
        }
        // Nodes that could not be dropped are looked through again only after many more have come.
        self.evict_above = MOST_NODES.max(self.nodes.len() + MOST_NODES / 100);
    }
}
