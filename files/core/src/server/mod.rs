//! The server core: sessions, leases and batches over a [`Store`], without IO and without a clock.
//!
//! A runtime hands in requests ([`Server::handle_request`]), outcomes of callbacks, and the time, and takes out
//! [`ServerEffect`]s. Each request gets exactly one response, at once or later.
//!
//! # Why clients see one file system
//!
//! A client uses its copy of a node only under a lease, and changes a node only under an exclusive one. If leases exclude each
//! other, and no copy is given out while a change to it is still on its way, then each operation takes effect at one moment
//! between its beginning and its end. The invariants say this in steps that can be checked:
//!
//! - **FSSERVE-1** If a session has an exclusive lease on a node, no other session has a lease on it.
//! - **FSSERVE-2** A batch changes only nodes on which its session has an exclusive lease, or which no other session has leased
//!   and only lose or gain a name; the session is given an exclusive lease on these before the batch is appended. A change of contents, of
//!   attributes or of a directory always needs the lease that the client knows.
//! - **FSSERVE-3** No attributes, names or contents are given out with a lease, or in response to a read, while another session
//!   has an exclusive lease on the node. With FSSERVE-2: nothing that is given out is changed by a batch that was appended and is
//!   not applied. An entry of a listing or of a Welcome that comes without a lease may be out of date.
//! - **FSSERVE-4** A lease ends only when the client has given it back, has closed the orphan, or when its session has ended; and a session ends, other than by
//!   the client's wish, only when its term has passed since its last request, or when it does not answer a recall for several terms.
//!   The client counts the term from an earlier moment than the server, so it stops first.
//! - **FSSERVE-5** While a recall is outstanding, the session gets no lease on the node beyond what the recall lets it keep. So the
//!   answer to a recall never takes away a lease that was granted after it.
//! - **FSSERVE-6** A lease is given back only after all appended batches are applied: what the next holder reads has them.
//! - **FSSERVE-7** Requests for a node are served in the order of their arrival, if they conflict. One that waits blocks later ones, except
//!   those of sessions that hold a sufficient lease already: they must be able to flush. A request holds nothing while it waits, so
//!   requests never wait in a circle.
//! - **FSSERVE-8** Batches of a client are applied in the order of their numbers, each once. At most one per session is appended
//!   and not applied; after one that failed or was refused, none is applied until the client has said Hello.
//! - **FSSERVE-9** A batch is answered with its outcome only after [`Store::commit`] has returned.
//! - **FSSERVE-10** A node without a name is kept while a session has it open, or may have: all sessions that have heard of the node are
//!   asked; after a restart of the server, when the first term has passed.
//! - **FSSERVE-11** During the first term of a server's life, leases are only reclaimed: what a client held before is given to no
//!   other before that client has stopped using it. The server believes what clients reclaim, so a client reclaims only what it held,
//!   and only while its term, counted from its last request to the server before, has not passed. Later its leases may have been
//!   another client's before the restart: then it asks with Lease, and compares versions.
//! - **FSSERVE-12** Each request gets exactly one response, unless the store has failed. What a session can make the server remember is bounded.
//! - **FSSERVE-13** A client reaches only nodes that the server has named to it, or that it has created: all other handles are refused.
//! - **FSSERVE-14** An exclusive lease that several sessions in turn have had recalled within a short time is only lent: the client gives
//!   it back with the changes of the operations that waited for it. It is recalled only if it does not come back in time, so nothing
//!   but time depends on a client that does so. After a time without a change of the holder it is granted again.
//! - **FSSERVE-15** If a session ends with an exclusive lease on a node, and another client learns of the node before the client has come
//!   back, then the client's changes that were not sent are void, also after a restart of the server. So they are if another client
//!   learns of the node after a restart, when the grace period has passed; and if the client was away for a whole life of the server in
//!   which others have learned of anything.
//!
//! The response with a lease and a recall of it may overtake each other on the network. A client therefore treats each lease in
//! a response as reduced by all recalls that arrived while the request was outstanding.

mod abandoned;
mod batches;
mod contention;
mod effect;
mod fences;
mod grants;
mod handles;
mod latecomers;
mod leases;
mod lists;
mod lock_requests;
mod locks;
mod metrics;
mod orphans;
mod queue;
mod reads;
mod recall;
mod recalls;
mod records;
mod session;
mod settings;
mod status;
mod welcome;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use crate::wire::frame::{decode, encode};
use crate::wire::{
    Decoded, Errno, Failure, Handle, Ino, Request, RequestKind, Response, SessionRequest,
};
use bytes::Bytes;

use crate::store::{Store, StoreError};
use abandoned::Abandoned;
use batches::Appended;
use contention::Contention;
use handles::Proofs;
use latecomers::{Learned, MAX_LEARNED};
use leases::Leases;
use lock_requests::EarlyLock;
use locks::Locks;
use orphans::Orphans;
use queue::Queue;
use recalls::Recalls;
use session::Sessions;
use settings::IDLE_TERMS;

pub use effect::{CallToken, CallbackToken, ServerEffect};
pub use metrics::ServerMetrics;
pub use settings::{EXPORT_SHIFT, ServerSettings};

/// The server core. The module's documentation says what it promises.
#[derive(Debug)]
pub struct Server<S> {
    store: S,
    settings: ServerSettings,
    proofs: Proofs,
    now: Duration,
    /// Until when leases are only reclaimed.
    grace_ends: Option<Duration>,
    sessions: Sessions,
    leases: Leases,
    contention: Contention,
    queue: Queue,
    recalls: Recalls,
    appended: Appended,
    locks: Locks,
    early_locks: Vec<EarlyLock>,
    orphans: Orphans,
    abandoned: Abandoned,
    /// First number of the first range of this life of the server.
    life_starts: Option<u64>,
    /// What the store said in the beginning: since which range clients may return in this life.
    returns_from: u64,
    learned: Learned,
    effects: VecDeque<ServerEffect>,
    counters: metrics::Counters,
    /// Whether the store has failed; the error, until `poll` returns it.
    is_broken: bool,
    store_error: Option<StoreError>,
}

impl<S: Store> Server<S> {
    /// Begins to serve a store.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn new(store: S, settings: ServerSettings, now: Duration) -> Result<Self, StoreError> {
        let proofs = Proofs::new(store.secret());
        let returns_from = store.returns_from();
        let mut server = Self {
            grace_ends: settings.grace.then(|| now + settings.term),
            store,
            settings,
            proofs,
            now,
            sessions: Sessions::default(),
            leases: Leases::default(),
            contention: Contention::default(),
            queue: Queue::default(),
            recalls: Recalls::default(),
            appended: Appended::default(),
            locks: Locks::default(),
            early_locks: Vec::new(),
            orphans: Orphans::default(),
            abandoned: Abandoned::default(),
            life_starts: None,
            returns_from,
            learned: Learned::new(MAX_LEARNED),
            effects: VecDeque::new(),
            counters: metrics::Counters::default(),
            is_broken: false,
            store_error: None,
        };
        if server.grace_ends.is_none() {
            server.ask_about_orphans();
        }
        Ok(server)
    }

    /// Handles a request from `peer`, where the callbacks of its session go. Returns its kind, if it is understood.
    pub fn handle_request(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        call: CallToken,
        message: Bytes,
    ) -> Option<RequestKind> {
        self.set_now(now);
        if self.is_broken {
            self.fail_errno(call, Errno::IO);
            return None;
        }
        let mut kind = None;
        match decode::<Request>(message) {
            Err(_) => self.fail(call, Failure::Malformed),
            Ok(decoded) => {
                kind = Some(decoded.message.kind());
                self.counters.requests.add(decoded.message.kind() as u8);
                self.handle_message(peer, call, decoded);
            }
        }
        self.settle();
        kind
    }

    fn handle_message(&mut self, peer: SocketAddr, call: CallToken, decoded: Decoded<Request>) {
        match decoded.message {
            Request::Hello(hello) => self.welcome(peer, call, &hello),
            Request::Of { session, request } if self.hear(session, peer) => {
                self.dispatch(session, call, request, decoded.payload);
            }
            Request::Of { .. } => self.fail(call, Failure::SessionEnded),
        }
    }

    /// Handles the outcome of a callback; `None` if the call failed.
    pub fn handle_callback_response(
        &mut self,
        now: Duration,
        callback: CallbackToken,
        response: Option<Bytes>,
    ) {
        self.set_now(now);
        if !self.is_broken {
            self.finish_recall(callback, response);
            self.settle();
        }
    }

    /// Commits what was appended and lets time pass. To be called after a burst of messages, and at the
    /// [deadline](Self::next_deadline).
    ///
    /// # Errors
    ///
    /// The store's: the server ends, without responding to what was not committed.
    pub fn poll(&mut self, now: Duration) -> Result<(), StoreError> {
        self.set_now(now);
        self.commit_all();
        if !self.is_broken {
            if self.grace_ends.is_some_and(|end| now >= end) {
                self.end_grace();
            }
            self.recall_lent();
            self.check_recalls();
            self.check_locks();
            self.end_idle_sessions();
            self.settle();
            // What waited for the end of the grace period may have been appended just now.
            self.commit_all();
            self.settle();
        }
        self.store_error.take().map_or(Ok(()), Err)
    }

    /// Returns when [`poll`](Self::poll) is needed although no message arrives.
    pub fn next_deadline(&self) -> Option<Duration> {
        let idle = self.sessions.iter().map(|(_, session)| session.last_heard);
        let idle = idle.min().map(|heard| heard + self.settings.term * IDLE_TERMS);
        let waiting = [self.recall_deadline(), self.lock_deadline(), self.contention.deadline()];
        [self.grace_ends, idle].into_iter().chain(waiting).flatten().min()
    }

    /// Takes the next effect.
    pub fn take_effect(&mut self) -> Option<ServerEffect> {
        self.effects.pop_front()
    }

    /// Returns the store, for what only the store can do, such as planting a fault.
    pub const fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Returns the store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Ends the server without a word to its clients, as a crash does, and returns the store.
    pub fn into_store(self) -> S {
        self.store
    }

    fn dispatch(&mut self, session: u64, call: CallToken, request: SessionRequest, payload: Bytes) {
        match request {
            SessionRequest::Renew => self.respond(call, &Response::Done),
            SessionRequest::Goodbye => self.part(session, call),
            SessionRequest::Reclaim { leases } => self.reclaim(session, call, &leases),
            SessionRequest::Batch(batch) => self.receive_batch(session, call, batch, payload),
            SessionRequest::Release { leases } => self.release(session, call, &leases),
            SessionRequest::Lock(lock) => self.lock(session, call, &lock),
            SessionRequest::TestLock(lock) => self.test_lock(session, call, &lock),
            SessionRequest::CancelLock { file, owner } => {
                self.cancel_lock(session, call, file, owner);
            }
            SessionRequest::StatFs => match self.store.space() {
                Ok(space) => self.respond(call, &Response::Space(space)),
                Err(errno) => self.fail_errno(call, errno),
            },
            SessionRequest::Status => {
                let status = self.status();
                self.respond(call, &Response::Status(status));
            }
            SessionRequest::LookUp(_)
            | SessionRequest::ListTree(_)
            | SessionRequest::Read { .. }
            | SessionRequest::Lease { .. }
            | SessionRequest::GetXattr { .. }
            | SessionRequest::ListXattr { .. }
            | SessionRequest::Seek { .. } => self.serve(session, call, request),
        }
    }

    /// Serves what became possible, and sends recalls.
    fn settle(&mut self) {
        while !self.is_broken
            && let Some(ticket) = self.queue.pop_ready()
        {
            self.retry(ticket);
        }
        self.send_recalls();
    }

    fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Whether leases are only reclaimed.
    const fn is_grace(&self) -> bool {
        self.grace_ends.is_some()
    }

    /// Whether the session's client has stopped using its leases, by its own clock.
    fn is_silent(&self, session: u64) -> bool {
        let session = self.sessions.get(session);
        session.is_none_or(|session| self.now >= session.last_heard + self.settings.term)
    }

    fn end_grace(&mut self) {
        self.grace_ends = None;
        self.ask_about_orphans();
        self.serve_early_locks();
        let sessions: Vec<u64> = self.sessions.iter().map(|(number, _)| number).collect();
        for session in sessions {
            self.advance(session);
        }
        self.queue.touch_all();
    }

    /// Whether a handle is one that the session's client may use.
    fn is_valid(&self, session: u64, handle: Handle) -> bool {
        self.proofs.is_made(handle)
            || handle.proof == 0
                && self.sessions.get(session).is_some_and(|session| session.owns(handle.ino))
    }

    /// Forgets what is known of a node that does not exist any more.
    fn forget_node(&mut self, ino: Ino) {
        self.leases.forget(ino);
        for session in self.sessions.values_mut() {
            session.forget(ino);
        }
        for call in self.locks.forget(ino) {
            self.fail_errno(call, Errno::STALE);
        }
        self.queue.touch(ino);
    }

    fn respond(&mut self, call: CallToken, response: &Response) {
        self.respond_with(call, encode(response), Vec::new());
    }

    fn respond_with(&mut self, call: CallToken, header: Bytes, payload: Vec<Bytes>) {
        self.effects.push_back(ServerEffect::Respond { call, header, payload });
    }

    fn fail(&mut self, call: CallToken, failure: Failure) {
        self.respond(call, &Response::Failed(failure));
    }

    fn fail_errno(&mut self, call: CallToken, errno: Errno) {
        self.fail(call, Failure::Errno(errno));
    }
}
