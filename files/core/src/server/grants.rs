//! Granting: requests that need leases are served, or wait for their turn.

use crate::wire::frame::encode;
use crate::wire::{
    Attributes, Errno, Failure, Handle, Ino, LeaseKind, Response, SessionRequest, WantedLease,
};
use bytes::Bytes;

use super::Server;
use super::effect::CallToken;
use super::leases::is_conflict;
use super::queue::{LAST, Needs, Waiting};
use super::settings::MAX_LEASES;
use crate::store::Store;

/// What became of an attempt to serve a request.
pub(super) enum Attempt {
    /// It is served: header and payload of the response.
    Done(Bytes, Vec<Bytes>),
    /// Other sessions have these nodes.
    Blocked(Needs),
}

impl Attempt {
    pub(super) fn failed(errno: Errno) -> Self {
        Response::Failed(Failure::Errno(errno)).into()
    }
}

impl From<Response> for Attempt {
    fn from(response: Response) -> Self {
        Self::Done(encode(&response), Vec::new())
    }
}

impl<S: Store> Server<S> {
    /// Serves a request that needs leases, now or later.
    pub(super) fn serve(&mut self, session: u64, call: CallToken, request: SessionRequest) {
        let ticket = self.queue.draw_ticket();
        match self.attempt(ticket, session, &request) {
            // What it says may have to be durable (FSSERVE-15).
            _ if self.is_broken => self.fail_errno(call, Errno::IO),
            Attempt::Done(header, payload) => self.respond_with(call, header, payload),
            Attempt::Blocked(needs) if self.queue.has_room(session, needs.len()) => {
                self.queue.insert(ticket, Waiting { session, call, request, needs });
                self.recall_for(ticket);
            }
            Attempt::Blocked(_) => self.fail_errno(call, Errno::AGAIN),
        }
    }

    /// Attempts a waiting request again.
    pub(super) fn retry(&mut self, ticket: u64) {
        let Some(waiting) = self.queue.get(ticket) else { return };
        let (session, request) = (waiting.session, waiting.request.clone());
        match self.attempt(ticket, session, &request) {
            _ if self.is_broken => {
                if let Some(waiting) = self.queue.remove(ticket) {
                    self.fail_errno(waiting.call, Errno::IO);
                }
            }
            Attempt::Done(header, payload) => {
                if let Some(waiting) = self.queue.remove(ticket) {
                    self.respond_with(waiting.call, header, payload);
                }
            }
            Attempt::Blocked(needs) => {
                self.queue.set_needs(ticket, needs);
                self.recall_for(ticket);
            }
        }
    }

    fn attempt(&mut self, ticket: u64, session: u64, request: &SessionRequest) -> Attempt {
        match request {
            SessionRequest::LookUp(look_up) => self.look_up(ticket, session, look_up),
            SessionRequest::ListTree(list) => self.list_tree(ticket, session, list),
            SessionRequest::Read { ranges } => self.read(ticket, session, ranges),
            SessionRequest::Lease { wanted } => self.lease(ticket, session, wanted),
            SessionRequest::GetXattr { node, name } => {
                self.read_node(ticket, session, *node, |store, ino| {
                    store.xattr(ino, name).map(Response::Xattr)
                })
            }
            SessionRequest::ListXattr { node } => {
                self.read_node(ticket, session, *node, |store, ino| {
                    store.xattrs(ino).map(Response::Xattrs)
                })
            }
            SessionRequest::Seek { file, offset, target } => {
                self.read_node(ticket, session, *file, |store, ino| {
                    store.seek(ino, *offset, *target).map(Response::Position)
                })
            }
            _ => Attempt::failed(Errno::INVAL),
        }
    }

    /// Whether the store's state of a node may be given to a session (FSSERVE-3), in the order of arrival (FSSERVE-7).
    pub(super) fn is_readable(&self, ticket: u64, session: u64, ino: Ino) -> bool {
        self.leases.held(session, ino) != LeaseKind::None
            || !self.is_grace()
                && !self.leases.is_taken(session, ino, LeaseKind::Shared)
                && !self.queue.is_ahead(ticket, session, ino, LeaseKind::Shared)
    }

    /// What a session has of a node, and will keep (FSSERVE-5).
    fn kept(&self, session: u64, ino: Ino) -> LeaseKind {
        let held = self.leases.held(session, ino);
        self.recalls.keep(session, ino).map_or(held, |keep| held.min(keep))
    }

    /// Whether a session may have a lease.
    fn is_grantable(&self, ticket: u64, session: u64, ino: Ino, kind: LeaseKind) -> bool {
        self.kept(session, ino) >= kind
            || !self.is_grace()
                && self.recalls.keep(session, ino).is_none_or(|keep| keep >= kind)
                && !self.leases.is_taken(session, ino, kind)
                && !self.queue.is_ahead(ticket, session, ino, kind)
    }

    /// Grants what is possible of a lease at once, and returns what the session has then.
    pub(super) fn offer(
        &mut self,
        ticket: u64,
        session: u64,
        ino: Ino,
        wanted: LeaseKind,
    ) -> LeaseKind {
        let kept = self.kept(session, ino);
        if wanted <= kept || self.leases.count(session) >= MAX_LEASES {
            return kept;
        }
        // An exclusive lease that was not asked for by a request of its own waits for all that wait.
        let kind = if wanted == LeaseKind::Exclusive
            && !self.contention.is_contended(ino, self.now)
            && self.is_grantable(LAST, session, ino, LeaseKind::Exclusive)
        {
            LeaseKind::Exclusive
        } else if self.is_grantable(ticket, session, ino, LeaseKind::Shared) {
            LeaseKind::Shared
        } else {
            return kept;
        };
        self.grant(session, ino, kind);
        self.kept(session, ino)
    }

    /// As [`offer`](Self::offer), for a lease that the client had before: the only one that is granted in the grace period.
    pub(super) fn offer_reclaimed(&mut self, session: u64, ino: Ino, wanted: LeaseKind) {
        if !self.is_grace() {
            self.offer(LAST, session, ino, wanted);
            return;
        }
        let has_room = self.leases.count(session) < MAX_LEASES;
        let kinds = [LeaseKind::Exclusive, LeaseKind::Shared];
        let mut kinds = kinds.into_iter().filter(|kind| has_room && *kind <= wanted);
        if let Some(kind) = kinds.find(|kind| !self.leases.is_taken(session, ino, *kind)) {
            self.grant(session, ino, kind);
            // A request of the same session may wait for it.
            self.queue.touch(ino);
        }
    }

    /// Raises what a session holds to at least `kind`.
    pub(super) fn grant(&mut self, session: u64, ino: Ino, kind: LeaseKind) {
        if kind > self.leases.held(session, ino) {
            self.leases.set(session, ino, kind);
        }
        self.reveal(session, ino);
        if let Some(session) = self.sessions.get_mut(session) {
            session.note(ino);
        }
    }

    /// Reduces what a session holds to at most `keep`.
    pub(super) fn reduce(&mut self, session: u64, ino: Ino, keep: LeaseKind) {
        if self.leases.held(session, ino) > keep {
            self.leases.set(session, ino, keep);
            self.contention.returned(ino);
        }
        self.queue.touch(ino);
    }

    /// Grants all leases of a list, or none.
    fn lease(&mut self, ticket: u64, session: u64, wanted: &[WantedLease]) -> Attempt {
        let mut needs = Needs::new();
        for lease in wanted.iter().filter(|lease| lease.kind != LeaseKind::None) {
            // A node that is gone does not prevent the other leases: clients ask for thousands at a time.
            if self.is_valid(session, lease.node) && self.store.attributes(lease.node.ino).is_ok() {
                let need = needs.entry(lease.node.ino).or_default();
                *need = lease.kind.max(*need);
            }
        }
        if !needs.iter().all(|(ino, kind)| self.is_grantable(ticket, session, *ino, *kind)) {
            return Attempt::Blocked(needs);
        }
        if self.leases.count(session) + needs.len() > MAX_LEASES {
            return Attempt::failed(Errno::NFILE);
        }
        let mut lent = Vec::new();
        for (ino, kind) in &needs {
            self.grant(session, *ino, *kind);
            let is_exclusive = *kind == LeaseKind::Exclusive;
            if is_exclusive && self.contention.lend(*ino, session, self.now) {
                lent.push(*ino);
            }
        }
        let leases: Vec<(LeaseKind, Option<Attributes>)> =
            wanted.iter().map(|lease| self.leased(session, lease.node)).collect();
        Response::Leased { leases, lent }.into()
    }

    fn leased(&mut self, session: u64, node: Handle) -> (LeaseKind, Option<Attributes>) {
        let kind = self.kept(session, node.ino);
        if kind == LeaseKind::None || !self.is_valid(session, node) {
            return (LeaseKind::None, None);
        }
        match self.store.attributes(node.ino) {
            Ok(attributes) => (kind, Some(attributes)),
            Err(_) => (LeaseKind::None, None),
        }
    }

    /// Takes leases that a client gives back.
    pub(super) fn release(
        &mut self,
        session: u64,
        call: CallToken,
        leases: &[(Handle, LeaseKind)],
    ) {
        // FSSERVE-6.
        self.commit_all();
        for (handle, keep) in leases {
            self.give_back(session, handle.ino, *keep);
        }
        self.respond(call, &Response::Done);
    }

    /// Takes a lease that a client gives back by itself.
    pub(super) fn give_back(&mut self, session: u64, ino: Ino, keep: LeaseKind) {
        self.reduce(session, ino, keep);
        self.recalls.forget(session, ino, keep);
    }

    /// Recalls leases that were lent, are wanted, and have not come back.
    pub(super) fn recall_lent(&mut self) {
        for ino in self.contention.take_late(self.now) {
            for ticket in self.queue.tickets_at(ino) {
                self.recall_for(ticket);
            }
        }
    }

    /// Recalls what prevents a waiting request.
    fn recall_for(&mut self, ticket: u64) {
        let Some(waiting) = self.queue.get(ticket) else { return };
        let mut recalls = Vec::new();
        for (ino, kind) in &waiting.needs {
            let others = self.leases.holders(*ino).iter();
            let others = others
                .filter(|(holder, held)| *holder != waiting.session && is_conflict(*held, *kind));
            let keep = if *kind == LeaseKind::Shared { *kind } else { LeaseKind::None };
            recalls.extend(others.map(|(holder, held)| (*holder, *ino, keep, *held)));
        }
        for (holder, ino, keep, held) in recalls {
            if self.is_silent(holder) {
                self.end_session(holder, true);
            } else if held == LeaseKind::Exclusive && self.contention.is_lent(ino, self.now) {
                // FSSERVE-14: it comes back by itself.
            } else {
                if held == LeaseKind::Exclusive {
                    self.contention.note_holder(ino, holder, self.now);
                }
                self.recalls.request(holder, ino, keep, false, self.now);
            }
        }
    }
}
