//! Beginning, resuming and ending of sessions.

use std::net::SocketAddr;

use crate::wire::frame::encode;
use crate::wire::{
    Callback, Entry, Errno, Failure, Handle, Hello, Ino, LeaseKind, Response, Version, Welcome,
    WireVersion,
};

use super::Server;
use super::effect::{CallToken, ServerEffect};
use super::queue::LAST;
use super::session::Session;
use super::settings::{EXPORT_SHIFT, IDLE_TERMS};
use crate::store::{ClientId, Store};

impl<S: Store> Server<S> {
    /// Notes that a session's client was heard; false if there is no such session of this peer.
    pub(super) fn hear(&mut self, number: u64, peer: SocketAddr) -> bool {
        let now = self.now;
        let Some(session) = self.sessions.get_mut(number).filter(|session| session.peer == peer)
        else {
            return false;
        };
        session.last_heard = now;
        session.is_known = true;
        self.recalls.wake(number);
        true
    }

    /// Begins or resumes a session.
    pub(super) fn welcome(&mut self, peer: SocketAddr, call: CallToken, hello: &Hello) {
        let version = hello.newest.min(WireVersion::CURRENT);
        if version < hello.oldest || version < WireVersion::OLDEST {
            let failure =
                Failure::Version { oldest: WireVersion::OLDEST, newest: WireVersion::CURRENT };
            return self.fail(call, failure);
        }
        // What the client had appended counts, whether or not it resumes.
        self.commit();
        let client = ClientId(hello.client);
        let before = self.sessions.of_client(client);
        let is_resumed = before.is_some() && before == hello.session;
        if !is_resumed {
            if let Some(number) = before {
                self.end_session(number, false);
            }
            if !self.make_room() {
                return self.fail(call, Failure::TooManySessions);
            }
            return self.begin_session(peer, call, hello, version);
        }
        let number = before.unwrap_or_default();
        let now = self.now;
        if let Some(session) = self.sessions.get_mut(number) {
            session.peer = peer;
            session.last_heard = now;
            if hello.greeting > session.greeting {
                session.greeting = hello.greeting;
                session.is_stopped = false;
            }
            session.is_known = true;
            session.read_only = hello.read_only;
        }
        self.recalls.wake(number);
        self.accept(call, number, None, hello, version);
    }

    fn begin_session(
        &mut self,
        peer: SocketAddr,
        call: CallToken,
        hello: &Hello,
        version: WireVersion,
    ) {
        let Some(first) = self.reserve_inos() else { return self.fail_errno(call, Errno::IO) };
        let number = first | u64::from(self.settings.export) << EXPORT_SHIFT;
        let client = ClientId(hello.client);
        let applied = self.store.applied(client);
        let mut session = Session::new(client, hello.name.clone(), peer, self.now, applied);
        session.read_only = hello.read_only;
        session.is_fenced = self.store.is_fenced(client);
        session.greeting = hello.greeting;
        self.sessions.insert(number, session);
        self.note_return(number, first, hello);
        self.accept(call, number, Some(first), hello, version);
    }

    /// Gives a session a range, that from `first` on if it has begun just now, and responds.
    fn accept(
        &mut self,
        call: CallToken,
        number: u64,
        first: Option<u64>,
        hello: &Hello,
        version: WireVersion,
    ) {
        let resumed = first.is_none();
        let Some(first) = first.or_else(|| self.reserve_inos()) else {
            return self.fail_errno(call, Errno::IO);
        };
        let client = ClientId(hello.client);
        let range = self.proofs.range(client, first, self.settings.inos);
        let proofs = &self.proofs;
        let Some(session) = self.sessions.get_mut(number) else { return };
        for old in &hello.ranges {
            let is_known = session.ranges.contains(&(old.first, old.count));
            if !is_known && proofs.range(client, old.first, old.count) == *old {
                session.add_range(old.first, old.count);
            }
        }
        session.add_range(range.first, range.count);
        let applied = session.applied;
        let attributes = match self.store.attributes(Ino::ROOT) {
            Ok(attributes) => attributes,
            Err(errno) => return self.fail_errno(call, errno),
        };
        let lease = if self.is_readable(LAST, number, Ino::ROOT) {
            self.offer(LAST, number, Ino::ROOT, LeaseKind::Shared)
        } else {
            LeaseKind::None
        };
        let root =
            Entry { handle: self.proofs.handle(Ino::ROOT), attributes, lease, contents: None };
        let welcome = Welcome {
            version,
            session: number,
            resumed,
            term_ms: u32::try_from(self.settings.term.as_millis()).unwrap_or(u32::MAX),
            root,
            first_ino: range.first,
            inos: range.count,
            inos_proof: range.proof,
            applied,
            read_only: self.settings.read_only,
            failed: self.store.last_failure(client),
        };
        self.respond(call, &Response::Welcome(welcome));
    }

    fn reserve_inos(&mut self) -> Option<u64> {
        match self.store.reserve_inos(self.settings.inos) {
            Ok(first) => Some(first),
            Err(error) => {
                self.is_broken = true;
                self.store_error = Some(error);
                None
            }
        }
    }

    /// Ends the session that was silent longest if there are too many; false if none is silent for a term.
    fn make_room(&mut self) -> bool {
        if self.sessions.len() < self.settings.max_sessions {
            return true;
        }
        let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last_heard);
        let Some(number) = oldest.map(|(number, _)| number) else { return false };
        self.is_silent(number) && self.end_session(number, true).is_some()
    }

    /// Ends sessions of clients that are gone for good.
    pub(super) fn end_idle_sessions(&mut self) {
        let idle = self.settings.term * IDLE_TERMS;
        let all = self.sessions.iter();
        let ended = all.filter(|(_, session)| self.now >= session.last_heard + idle);
        let ended: Vec<u64> = ended.map(|(number, _)| number).collect();
        for number in ended {
            self.end_session(number, true);
        }
    }

    /// Ends a session by its client's wish. The client's identity is never used again.
    pub(super) fn part(&mut self, number: u64, call: CallToken) {
        if let Some(session) = self.end_session(number, false)
            && !self.is_broken
        {
            self.abandoned.forget(session.client);
            self.store.forget_client(session.client);
        }
        self.respond(call, &Response::Done);
    }

    /// Ends a session: its leases and locks are free, its waiting requests fail. If `is_fenced`, its client is notified.
    pub(super) fn end_session(&mut self, number: u64, is_fenced: bool) -> Option<Session> {
        self.sessions.get(number)?;
        // FSSERVE-6: what it has appended is applied before its leases are free. The batches that it holds back are not.
        self.refuse_held(number, &Failure::SessionEnded);
        self.commit();
        let session = self.sessions.remove(number)?;
        self.abandon(number, session.client);
        for ticket in self.queue.tickets_of(number) {
            if let Some(waiting) = self.queue.remove(ticket) {
                self.fail(waiting.call, Failure::SessionEnded);
            }
        }
        self.recalls.end(number);
        for ino in self.leases.end(number) {
            self.queue.touch(ino);
        }
        self.drop_early_locks(number);
        let ended = self.locks.end(number);
        for call in ended.withdrawn {
            self.fail(call, Failure::SessionEnded);
        }
        self.locks_granted(&ended.granted);
        for ino in self.orphans.end(number) {
            self.drop_if_unused(ino);
        }
        if is_fenced {
            let message = encode(&Callback::Fence { session: number });
            let callback = self.recalls.draw_token();
            self.effects.push_back(ServerEffect::Call { callback, peer: session.peer, message });
        }
        Some(session)
    }

    /// Grants leases that a client had before its session ended, and says which of its copies are valid.
    pub(super) fn reclaim(
        &mut self,
        session: u64,
        call: CallToken,
        leases: &[(Handle, LeaseKind, Version)],
    ) {
        if leases.is_empty() {
            self.end_return(session);
        }
        for (handle, _, _) in leases.iter().filter(|(_, kind, _)| *kind == LeaseKind::Exclusive) {
            self.check_late_claim(session, handle.ino);
        }
        let reclaimed = leases.iter().map(|(handle, kind, version)| {
            let ino = handle.ino;
            let attributes = if self.is_valid(session, *handle) {
                self.store.attributes(ino)
            } else {
                Err(Errno::STALE)
            };
            let Ok(attributes) = attributes else { return (LeaseKind::None, false) };
            let (mut client, mut is_fenced) = (None, false);
            if let Some(session) = self.sessions.get_mut(session) {
                // Even without a lease: the client may have the node open.
                session.note(ino);
                (client, is_fenced) = (Some(session.client), session.is_fenced);
            }
            if is_fenced {
                return (LeaseKind::None, false);
            }
            self.offer_reclaimed(session, ino, *kind);
            // Nothing new in spite of a recall (FSSERVE-5), but what the session has until it answers: the first response may be lost.
            let kind = self.leases.held(session, ino).min(*kind);
            // What the client has changed last, it knows, whether or not it has learned of the version.
            let is_known = attributes.version == *version
                || client.is_some() && self.store.last_changer(ino) == client;
            (kind, kind != LeaseKind::None && is_known)
        });
        let reclaimed = reclaimed.collect();
        self.respond(call, &Response::Reclaimed(reclaimed));
    }
}
