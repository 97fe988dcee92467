//! Lock requests of clients.

use std::time::Duration;

use apus_fs_wire::{Errno, Handle, Ino, Lock, LockKind, LockOwner, LockRange, Response};

use super::Server;
use super::effect::CallToken;
use super::locks::{HeldLock, Holder, LockOutcome};
use crate::store::Store;

impl<S: Store> Server<S> {
    /// Takes or releases a lock.
    pub(super) fn lock(&mut self, session: u64, call: CallToken, lock: &Lock) {
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
        let Some(wanted) = self.wanted_lock(session, call, lock) else { return };
        self.end_silent_lockers(lock.file.ino, &wanted);
        let is_unlock = lock.kind == LockKind::Unlock;
        let conflict = self.locks.conflict(lock.file.ino, &wanted).filter(|_| !is_unlock);
        self.respond(call, &Response::Locked(conflict));
    }

    /// Withdraws lock requests that wait.
    pub(super) fn cancel_lock(
        &mut self,
        session: u64,
        call: CallToken,
        file: Handle,
        owner: LockOwner,
    ) {
        for withdrawn in self.locks.cancel(file.ino, Holder { session, owner }) {
            self.fail_errno(withdrawn, Errno::INTR);
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
