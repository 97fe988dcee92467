//! Access of sessions to nodes, and of clients that return with changes.

use std::sync::Arc;
use std::time::Duration;

use crate::rights::access::WRITE;
use crate::rights::{OVERFLOW_ID, Ownership, Rights, User};
use crate::store::{Store, StoreError};
use crate::wire::{Attributes, Errno, Handle, Ino, LeaseKind, NodeKind};

use super::abandoned::Abandoned;
use super::contention::Contention;
use super::handles::Proofs;
use super::learned::Learned;
use super::leases::Leases;
use super::queue::Queue;
use super::recalls::{Began, Recalls};
use super::session::{Sender, Session, Sessions};
use super::settings::ServerSettings;
use super::shares::{Host, Shares};

/// Leases, and the requests and recalls that change them.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    pub(super) leases: Leases,
    pub(super) contention: Contention,
    pub(super) queue: Queue,
    pub(super) recalls: Recalls,
}

impl Holdings {
    /// Reduces a session's lease to at most `keep`.
    pub(super) fn reduce(&mut self, session: u64, ino: Ino, keep: LeaseKind) {
        if self.leases.held(session, ino) > keep {
            self.leases.set(session, ino, keep);
            self.contention.returned(ino);
        }
        self.queue.touch(ino);
    }

    /// Reduces a lease that a client returns without an answer to a recall.
    pub(super) fn give_back(&mut self, session: u64, ino: Ino, keep: LeaseKind) {
        self.reduce(session, ino, keep);
        self.recalls.forget(session, ino, keep);
    }
}

/// Clients that may return with unsent changes.
#[derive(Debug)]
pub(super) struct Returns {
    pub(super) abandoned: Abandoned,
    pub(super) learned: Learned,
    /// First number of the first range of this life of the server.
    pub(super) life_starts: Option<u64>,
    /// First inode range whose clients may return, as reported by the store at the start.
    pub(super) returns_from: u64,
}

/// State that decides which session may use which node.
#[derive(Debug)]
pub(super) struct Access<S> {
    pub(super) store: S,
    pub(super) settings: ServerSettings,
    pub(super) proofs: Proofs,
    pub(super) now: Duration,
    /// End of the grace period, during which leases are only reclaimed.
    pub(super) grace_ends: Option<Duration>,
    pub(super) sessions: Sessions,
    /// Payload bytes of batches that wait for their predecessor.
    pub(super) held_shares: Shares,
    pub(super) holdings: Holdings,
    pub(super) returns: Returns,
    /// Whether the store has failed; the error, until `poll` returns it.
    pub(super) is_broken: bool,
    pub(super) store_error: Option<StoreError>,
}

impl<S: Store> Access<S> {
    /// Stops the server: the store has failed.
    pub(super) fn break_down(&mut self, error: StoreError) {
        self.is_broken = true;
        self.store_error = Some(error);
    }

    /// Returns the host of a session.
    pub(super) fn host(&self, session: u64) -> Option<Host> {
        self.sessions.get(session).map(|session| session.host)
    }

    /// Returns the beginning of a session's recall that is requested now.
    pub(super) fn began(&self, session: u64) -> Began {
        let (progress, silence) = self
            .sessions
            .get(session)
            .map_or((0, Duration::ZERO), |session| (session.progress, session.silence));
        Began { at: self.now, progress, silence }
    }

    /// Returns the rights of a session's client.
    pub(super) fn rights(&self, session: u64) -> Rights {
        let rights = self.sessions.get(session).map(|session| session.rights.clone());
        // Nothing asks for a session that has ended; if something did, it would get little.
        rights.unwrap_or_else(|| Rights::User(Arc::new(User::alone(OVERFLOW_ID))))
    }

    /// Checks that a session may access a node in all of the wanted kinds.
    pub(super) fn may(&mut self, session: u64, ino: Ino, wanted: u16) -> Result<(), Errno> {
        let rights = self.rights(session);
        if rights.is_full() || self.store.permits(ino, &rights, wanted)? {
            return Ok(());
        }
        Err(Errno::ACCES)
    }

    /// Checks that a session may read or write the contents of a node. The owner always may: it
    /// had the file open when the mode allowed it, or could change the mode.
    pub(super) fn may_use(&mut self, session: u64, ino: Ino, wanted: u16) -> Result<(), Errno> {
        let rights = self.rights(session);
        if rights.is_full() || rights.owns(Ownership::from(&self.store.attributes(ino)?)) {
            return Ok(());
        }
        self.may(session, ino, wanted)
    }

    /// Returns the lease that a session may have on a node. A directory that it may not change is
    /// never leased exclusively, so its client learns of the refusal before it changes its copy.
    pub(super) fn permitted(
        &self,
        session: u64,
        attributes: &Attributes,
        wanted: LeaseKind,
    ) -> LeaseKind {
        let rights = self.rights(session);
        let node = Ownership::from(attributes);
        let is_free = attributes.kind != NodeKind::Directory
            || rights.owns(node)
            || rights.permits(node, WRITE);
        if is_free { wanted } else { wanted.min(LeaseKind::Shared) }
    }

    /// Returns whether leases are only reclaimed.
    pub(super) const fn is_grace(&self) -> bool {
        self.grace_ends.is_some()
    }

    /// Returns whether the session's client has stopped using its leases, by its own clock.
    pub(super) fn is_silent(&self, session: u64) -> bool {
        let session = self.sessions.get(session);
        session.is_none_or(|session| self.now >= session.last_heard + self.settings.term)
    }

    /// Returns whether a session may use a handle.
    pub(super) fn is_valid(&self, session: u64, handle: Handle) -> bool {
        self.proofs.is_made(handle)
            || handle.proof == 0
                && self.sessions.get(session).is_some_and(|session| session.owns(handle.ino))
    }

    /// Returns a range of unused inode numbers; `None` if the store has failed.
    pub(super) fn reserve_inos(&mut self) -> Option<u64> {
        match self.store.reserve_inos(self.settings.inos) {
            Ok(first) => Some(first),
            Err(error) => {
                self.break_down(error);
                None
            }
        }
    }

    /// Restarts a session's term: a request has arrived. Returns false if the sender has no such
    /// session.
    pub(super) fn renew(&mut self, number: u64, sender: &Sender) -> bool {
        let now = self.now;
        let is_its = |session: &&mut Session| {
            session.peer == sender.peer && session.rights.is_same_client(&sender.rights)
        };
        let Some(session) = self.sessions.get_mut(number).filter(is_its) else { return false };
        session.is_known = true;
        self.sessions.hear(number, now, self.settings.term);
        self.holdings.recalls.wake(number);
        true
    }
}
