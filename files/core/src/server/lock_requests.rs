//! Lock requests of clients.
//!
//! After a restart, clients first take again what they had: other requests wait for the end of the grace period (FS-13).

use std::time::Duration;

use crate::wire::{Errno, Failure, Handle, Ino, Lock, LockKind, LockOwner, LockRange, Response};

use super::Server;
use super::effect::CallToken;
use super::locks::{HeldLock, Holder, LockOutcome};
use super::settings::MAX_WAITING_LOCKS;
use crate::store::Store;

/// A request that waits for the end of the grace period.
#[derive(Debug)]
pub(super) struct EarlyLock {
    session: u64,
    call: CallToken,
    lock: Lock,
    is_test: bool,
}

impl<S: Store> Server<S> {
    /// Takes or releases a lock.
    pub(super) fn lock(&mut self, session: u64, call: CallToken, lock: &Lock) {
        if lock.reclaim {
            return self.reclaim_lock(session, call, lock);
        }
        if self.is_grace() && lock.kind != LockKind::Unlock {
            return self.postpone_lock(session, call, lock, false);
        }
        let Some(wanted) = self.wanted_lock(session, call, lock) else { return };
        self.end_silent_lockers(lock.file.ino, &wanted);
        let mut granted = Vec::new();
        let wait = lock.wait.then_some(call);
        match self.locks.lock(lock.file.ino, wanted, wait, &mut granted) {
            LockOutcome::Taken => self.respond(call, &Response::Locked(None)),
            LockOutcome::Conflict(conflict) => {
                self.respond(call, &Response::Locked(Some(conflict)));
            }
            LockOutcome::Waits => {}
            LockOutcome::Deadlock => self.fail_errno(call, Errno::DEADLK),
            LockOutcome::Full => self.fail_errno(call, Errno::NOLCK),
        }
        self.locks_granted(&granted);
    }

    /// Returns the lock that prevents another one.
    pub(super) fn test_lock(&mut self, session: u64, call: CallToken, lock: &Lock) {
        if self.is_grace() {
            return self.postpone_lock(session, call, lock, true);
        }
        let Some(wanted) = self.wanted_lock(session, call, lock) else { return };
        self.end_silent_lockers(lock.file.ino, &wanted);
        let is_unlock = lock.kind == LockKind::Unlock;
        let conflict = self.locks.conflict(lock.file.ino, &wanted).filter(|_| !is_unlock);
        self.respond(call, &Response::Locked(conflict));
    }

    /// Gives a lock back to the client that had it before the server was restarted.
    fn reclaim_lock(&mut self, session: u64, call: CallToken, lock: &Lock) {
        let Some(wanted) = self.wanted_lock(session, call, lock) else { return };
        // The first response may be lost.
        if self.locks.is_held(lock.file.ino, &wanted) {
            return self.respond(call, &Response::Locked(None));
        }
        let is_fenced = self.sessions.get(session).is_none_or(|session| session.is_fenced);
        if !self.is_grace() || is_fenced {
            return self.fail_errno(call, Errno::NOLCK);
        }
        let mut granted = Vec::new();
        match self.locks.lock(lock.file.ino, wanted, None, &mut granted) {
            LockOutcome::Taken => self.respond(call, &Response::Locked(None)),
            _ => self.fail_errno(call, Errno::NOLCK),
        }
        self.locks_granted(&granted);
    }

    /// Keeps a request until all clients may have taken again what they had.
    fn postpone_lock(&mut self, session: u64, call: CallToken, lock: &Lock, is_test: bool) {
        let own = self.early_locks.iter().filter(|early| early.session == session).count();
        if own >= MAX_WAITING_LOCKS {
            return self.fail_errno(call, Errno::NOLCK);
        }
        self.early_locks.push(EarlyLock { session, call, lock: *lock, is_test });
    }

    /// Serves what waited for the end of the grace period, in the order of arrival.
    pub(super) fn serve_early_locks(&mut self) {
        for EarlyLock { session, call, lock, is_test } in std::mem::take(&mut self.early_locks) {
            if is_test {
                self.test_lock(session, call, &lock);
            } else {
                self.lock(session, call, &lock);
            }
        }
    }

    /// Withdraws the requests of a session that has ended, and that wait for the end of the grace period.
    pub(super) fn drop_early_locks(&mut self, session: u64) {
        let early = self.early_locks.extract_if(.., |early| early.session == session);
        for early in early.collect::<Vec<_>>() {
            self.fail(early.call, Failure::SessionEnded);
        }
    }

    /// Withdraws lock requests that wait.
    pub(super) fn cancel_lock(
        &mut self,
        session: u64,
        call: CallToken,
        file: Handle,
        owner: LockOwner,
    ) {
        let is_meant = |early: &mut EarlyLock| {
            !early.is_test
                && (early.session, early.lock.owner) == (session, owner)
                && early.lock.file.ino == file.ino
        };
        let early: Vec<_> = self.early_locks.extract_if(.., is_meant).collect();
        let withdrawn = self.locks.cancel(file.ino, Holder { session, owner });
        for call in early.into_iter().map(|early| early.call).chain(withdrawn) {
            self.fail_errno(call, Errno::INTR);
        }
        self.respond(call, &Response::Done);
    }

    /// Ends sessions that hold a wanted lock, and whose term has passed.
    fn end_silent_lockers(&mut self, ino: Ino, wanted: &HeldLock) {
        for holder in self.locks.blockers(ino, wanted) {
            if wanted.kind != LockKind::Unlock && self.is_silent(holder.session) {
                self.end_session(holder.session, true);
            }
        }
    }

    /// Ends sessions whose locks are waited for, and whose term has passed.
    pub(super) fn check_locks(&mut self) {
        for session in self.locks.blocking() {
            if self.is_silent(session) {
                self.end_session(session, true);
            }
        }
    }

    /// Returns when [`check_locks`](Self::check_locks) is needed.
    pub(super) fn lock_deadline(&self) -> Option<Duration> {
        let blocking = self.locks.blocking();
        let blocking = blocking.iter().filter_map(|number| self.sessions.get(*number));
        blocking.map(|session| session.last_heard + self.settings.term).min()
    }

    pub(super) fn locks_granted(&mut self, granted: &[CallToken]) {
        for call in granted {
            self.respond(*call, &Response::Locked(None));
        }
    }

    /// Checks a request; responds and returns `None` if it is refused.
    fn wanted_lock(&mut self, session: u64, call: CallToken, lock: &Lock) -> Option<HeldLock> {
        if !self.is_valid(session, lock.file) {
            self.fail_errno(call, Errno::STALE);
            return None;
        }
        let whole = LockRange { start: 0, end: u64::MAX };
        let range = if lock.owner.is_flock { whole } else { lock.range };
        let holder = Holder { session, owner: lock.owner };
        Some(HeldLock { holder, kind: lock.kind, range })
    }
}
