//! The server core: sessions, leases and batches over a [`Store`], without IO and without a clock.
//!
//! A runtime passes in requests ([`Server::handle_request`]), outcomes of callbacks, and the time,
//! and takes [`ServerEffect`]s. Each request gets exactly one response, at once or later.
//!
//! # Why clients see one file system
//!
//! A client uses its copy of a node only under a lease, and changes a node only under an exclusive
//! lease. If leases exclude each other, and no copy is given out while a change to it is in flight,
//! then each operation takes effect at one moment between its start and its end. The invariants
//! state this in steps that can be checked.
//!
//! Leases:
//!
//! - **FSSERVE-1** If a session has an exclusive lease on a node, then no other session has a lease
//!   on it.
//! - **FSSERVE-3** If a session has an exclusive lease on a node, then no other session receives
//!   attributes, names or contents of it, neither with a lease nor in response to a read. With
//!   FSSERVE-2: no appended batch changes data that was given out. Exempt are entries without a
//!   lease in a listing or a Welcome: they may be out of date.
//! - **FSSERVE-4** If a lease ends, then its client has returned it or closed the orphan, or its
//!   session has ended. If a session ends, then its client has requested that, or its term has
//!   passed since the last request, or a recall was not answered in time (`recall.rs`). The client
//!   starts its term earlier than the server, so it stops first.
//! - **FSSERVE-5** If a recall is outstanding, then its session gets no lease on the node beyond
//!   the kept part. So the answer never ends a lease that was granted later.
//! - **FSSERVE-6** If a lease is returned, then all appended batches are applied first: the next
//!   holder reads their changes.
//! - **FSSERVE-14** If the exclusive lease of a node is recalled from several sessions in turn
//!   within a short time, then it is only lent: the client returns it with the changes of the
//!   operations that waited for it. If it is not returned in time, then it is recalled, so a client
//!   that does not return it only costs time. If its holder does not change for a while, then it is
//!   granted again.
//!
//! Batches:
//!
//! - **FSSERVE-2** If a batch changes contents, attributes or a directory, then its session has an
//!   exclusive lease on the node, and the client knows it. If a node only gains or loses a name,
//!   then it suffices that no other session has a lease on it: the session gets an exclusive lease
//!   before the batch is appended.
//! - **FSSERVE-8** If a batch is applied, then all earlier ones of its client are, each once. If a
//!   batch of a session is appended, then the next one waits until it is applied. If a batch fails
//!   or is refused, then later ones are rejected until the client sends Hello.
//! - **FSSERVE-9** If a batch gets a response with its outcome, then [`Store::commit`] has
//!   returned.
//!
//! Requests:
//!
//! - **FSSERVE-7** If requests for a node conflict, then they are served in the order of their
//!   arrival. If one waits, then later ones wait as well, unless their sessions have a sufficient
//!   lease: these sessions must be able to flush. A waiting request holds no resource, so requests
//!   never wait in a circle.
//! - **FSSERVE-12** If the store works, then each request gets exactly one response. The memory
//!   that a session can occupy is bounded.
//! - **FSSERVE-13** If a handle was neither given to the client nor made by it, then it is refused.
//!
//! Sessions that end, and restarts:
//!
//! - **FSSERVE-10** If a session has a node without a name open, or may have, then the node is
//!   kept. All sessions that have received the node are asked; after a restart of the server, once
//!   the first term has passed.
//! - **FSSERVE-11** If the server is in the first term of its life, then leases are only reclaimed:
//!   no other client gets a lease before its earlier holder has stopped using it. The server
//!   accepts every claim. So if the client's term, from its last request to the previous life, has
//!   passed, then it does not reclaim: it requests the lease and compares versions, because another
//!   client may have had the lease before the restart.
//! - **FSSERVE-15** If a session ends with an exclusive lease on a node, and another client learns
//!   of the node before the client is back, then the client's unsent changes are void, also after a
//!   restart. If the server restarts, and another client learns of the node after the grace period,
//!   then they are void, too. If the client was absent for a whole life of the server in which
//!   another client learned of any node, then all of its unsent changes are void.
//!
//! A lease and its recall may overtake each other on the network. So a client reduces each lease in
//! a response by all recalls that arrived while the request was outstanding.

mod abandoned;
mod access;
mod appended;
mod attempt;
mod batches;
mod contention;
mod core;
mod early_locks;
mod effect;
mod ending;
mod fences;
mod file_locks;
mod grants;
mod handles;
mod latecomers;
mod learned;
mod leases;
mod lists;
mod lock_owner;
mod lock_requests;
mod lock_tree;
mod locks;
mod metrics;
mod orphan_care;
mod orphans;
mod output;
mod permissions;
mod queue;
mod reads;
mod recall;
mod recalls;
mod reclaim;
mod records;
mod requests;
mod session;
mod settings;
mod shares;
mod status;
mod welcome;
mod work;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::rights::{Rights, User};
use crate::store::{Store, StoreError};
use crate::wire::frame::decode;
use crate::wire::{Decoded, Errno, Failure, Request, RequestKind, Response, SessionRequest};
use bytes::Bytes;

use abandoned::Abandoned;
use access::{Access, Holdings, Returns};
use appended::Appended;
use batches::{advance, commit_all, receive_batch};
use core::Core;
use early_locks::EarlyLocks;
use ending::end_idle_sessions;
use handles::Proofs;
use learned::{Learned, MAX_LEARNED};
use lock_requests::{
    cancel_lock, check_locks, lock, lock_deadline, serve_early_locks, serve_ready_locks, test_lock,
};
use locks::Locks;
use orphan_care::ask_about_orphans;
use orphans::Orphans;
use output::Output;
use recall::{check_recalls, finish_recall, recall_deadline, schedule_checks, send_recalls};
use reclaim::reclaim;
use requests::{recall_lent, release, retry, serve};
use session::{Sender, Sessions};
use settings::{HELD_BYTES, IDLE_TERMS};
use shares::Shares;
use welcome::{part, welcome};

pub use effect::{CallToken, CallbackToken, ServerEffect};
pub use metrics::ServerMetrics;
pub use settings::{EXPORT_SHIFT, ServerSettings};

/// The server core. See the [module](self) for its invariants.
#[derive(Debug)]
pub struct Server<S> {
    core: Core<S>,
}

impl<S: Store> Server<S> {
    /// Starts to serve a store.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the store failed.
    pub fn new(store: S, settings: ServerSettings, now: Duration) -> Result<Self, StoreError> {
        let locks = Locks::new(store.secret());
        let access = Access {
            proofs: Proofs::new(store.secret()),
            returns: Returns {
                abandoned: Abandoned::default(),
                learned: Learned::new(MAX_LEARNED),
                life_starts: None,
                returns_from: store.returns_from(),
            },
            grace_ends: settings.grace.then(|| now + settings.term),
            store,
            sessions: Sessions::new(settings.max_sessions),
            settings,
            now,
            held_shares: Shares::new(HELD_BYTES),
            holdings: Holdings::default(),
            is_broken: false,
            store_error: None,
        };
        let mut core = Core {
            access,
            appended: Appended::default(),
            locks,
            early_locks: EarlyLocks::default(),
            orphans: Orphans::default(),
            output: Output::default(),
        };
        if !core.access.is_grace() {
            ask_about_orphans(&mut core);
        }
        Ok(Self { core })
    }

    /// Handles a request of a client that may do everything, or whatever the user may do to whom all
    /// clients are squashed. See [`handle_request_as`](Self::handle_request_as).
    pub fn handle_request(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        call: CallToken,
        message: Bytes,
    ) -> Option<RequestKind> {
        let squash = self.core.access.settings.squash;
        let squash = squash.map(|uid| Rights::User(Arc::new(User::alone(uid))));
        self.handle_request_as(now, peer, squash.unwrap_or_default(), call, message)
    }

    /// Handles a request from `peer`, the address for callbacks of its session, with the rights of
    /// the client. Returns the kind of the request, if it could be decoded.
    ///
    /// A session keeps the rights that it began with: requests of another client do not reach it.
    pub fn handle_request_as(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        rights: Rights,
        call: CallToken,
        message: Bytes,
    ) -> Option<RequestKind> {
        self.set_now(now);
        let core = &mut self.core;
        if core.access.is_broken {
            core.output.fail_errno(call, Errno::IO);
            return None;
        }
        let mut kind = None;
        match decode::<Request>(message) {
            Err(_) => core.output.fail(call, Failure::Malformed),
            Ok(decoded) => {
                kind = Some(decoded.message.kind());
                core.output.counters.requests.add(decoded.message.kind() as u8);
                handle_message(core, &Sender { peer, rights }, call, decoded);
            }
        }
        settle(core);
        kind
    }

    /// Handles the outcome of a callback; `None` if the call failed.
    pub fn handle_callback_response(
        &mut self,
        now: Duration,
        callback: CallbackToken,
        response: Option<Bytes>,
    ) {
        self.set_now(now);
        if !self.core.access.is_broken {
            finish_recall(&mut self.core, callback, response);
            settle(&mut self.core);
        }
    }

    /// Commits appended batches and advances the time. To be called after a burst of messages, and
    /// at the [deadline](Self::next_deadline).
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the store failed, and the server stops without a response to uncommitted
    /// batches.
    pub fn poll(&mut self, now: Duration) -> Result<(), StoreError> {
        self.set_now(now);
        let core = &mut self.core;
        commit_all(core);
        if !core.access.is_broken {
            if core.access.grace_ends.is_some_and(|end| now >= end) {
                end_grace(core);
            }
            recall_lent(core);
            check_recalls(core);
            check_locks(core);
            end_idle_sessions(core);
            settle(core);
            // Batches that waited for the end of the grace period may have been appended just now.
            commit_all(core);
            settle(core);
        }
        core.access.store_error.take().map_or(Ok(()), Err)
    }

    /// Returns when [`poll`](Self::poll) must be called if no message arrives.
    pub fn next_deadline(&self) -> Option<Duration> {
        let Access { sessions, settings, holdings, grace_ends, .. } = &self.core.access;
        let idle = sessions.first_heard().map(|(_, heard)| heard + settings.term * IDLE_TERMS);
        let recall = recall_deadline(&self.core.access);
        let waiting = [recall, lock_deadline(&self.core), holdings.contention.deadline()];
        [*grace_ends, idle].into_iter().chain(waiting).flatten().min()
    }

    /// Returns the next effect.
    pub fn take_effect(&mut self) -> Option<ServerEffect> {
        self.core.output.take()
    }

    /// Returns the settings.
    pub const fn settings(&self) -> &ServerSettings {
        &self.core.access.settings
    }

    /// Returns the store, for access that only the store offers, such as planting a fault.
    pub const fn store_mut(&mut self) -> &mut S {
        &mut self.core.access.store
    }

    /// Returns the store.
    pub const fn store(&self) -> &S {
        &self.core.access.store
    }

    /// Drops the server without notifying clients, as in a crash, and returns the store.
    pub fn into_store(self) -> S {
        self.core.access.store
    }

    /// Returns counters and gauges.
    pub fn metrics(&self) -> ServerMetrics {
        metrics::metrics(&self.core.access, &self.core.output.counters)
    }

    fn set_now(&mut self, now: Duration) {
        self.core.access.now = self.core.access.now.max(now);
    }
}

fn handle_message<S: Store>(
    core: &mut Core<S>,
    sender: &Sender,
    call: CallToken,
    decoded: Decoded<Request>,
) {
    match decoded.message {
        Request::Hello(hello) => welcome(core, sender, call, &hello),
        Request::Of { session, request } if core.access.renew(session, sender) => {
            dispatch(core, session, call, request, decoded.payload);
        }
        Request::Of { .. } => core.output.fail(call, Failure::SessionEnded),
    }
}

fn dispatch<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    request: SessionRequest,
    payload: Bytes,
) {
    let Core { access, output, .. } = core;
    match request {
        SessionRequest::Renew => output.respond(call, &Response::Done),
        SessionRequest::Goodbye => part(core, session, call),
        SessionRequest::Reclaim { leases } => reclaim(access, output, session, call, &leases),
        SessionRequest::Batch(batch) => receive_batch(core, session, call, batch, payload),
        SessionRequest::Release { leases } => release(core, session, call, &leases),
        SessionRequest::Lock(wanted) => lock(core, session, call, &wanted),
        SessionRequest::TestLock(wanted) => test_lock(core, session, call, &wanted),
        SessionRequest::CancelLock { file, owner } => {
            cancel_lock(core, session, call, file, owner);
        }
        SessionRequest::StatFs => match access.store.space() {
            Ok(space) => output.respond(call, &Response::Space(space)),
            Err(errno) => output.fail_errno(call, errno),
        },
        SessionRequest::Status => {
            let status = status::status(access);
            output.respond(call, &Response::Status(status));
        }
        SessionRequest::LookUp(_)
        | SessionRequest::ListTree(_)
        | SessionRequest::Read { .. }
        | SessionRequest::Lease { .. }
        | SessionRequest::GetXattr { .. }
        | SessionRequest::ListXattr { .. }
        | SessionRequest::Seek { .. } => serve(core, session, call, request),
    }
}

/// Serves waiting requests that are ready, and sends recalls.
fn settle<S: Store>(core: &mut Core<S>) {
    while !core.access.is_broken
        && let Some(ticket) = core.access.holdings.queue.pop_ready()
    {
        retry(core, ticket);
    }
    serve_ready_locks(core);
    send_recalls(&mut core.access, &mut core.output);
    schedule_checks(&mut core.access);
}

fn end_grace<S: Store>(core: &mut Core<S>) {
    core.access.grace_ends = None;
    ask_about_orphans(core);
    serve_early_locks(core);
    let sessions: Vec<u64> = core.access.sessions.iter().map(|(number, _)| number).collect();
    for session in sessions {
        advance(core, session);
    }
    core.access.holdings.queue.touch_all();
}
