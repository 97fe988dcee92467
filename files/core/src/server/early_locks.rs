//! Lock requests that wait for the end of the grace period.

use crate::wire::{Failure, Ino, Lock, LockOwner};

use super::effect::CallToken;
use super::output::Output;
use super::settings::MAX_WAITING_LOCKS;

/// A request that waits for the end of the grace period.
#[derive(Debug)]
pub(super) struct EarlyLock {
    pub(super) session: u64,
    pub(super) call: CallToken,
    pub(super) lock: Lock,
    pub(super) is_test: bool,
}

/// Requests in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct EarlyLocks(Vec<EarlyLock>);

impl EarlyLocks {
    /// Adds a request. Returns false if its session has too many.
    pub(super) fn add(&mut self, early: EarlyLock) -> bool {
        let own = self.0.iter().filter(|other| other.session == early.session).count();
        let has_room = own < MAX_WAITING_LOCKS;
        if has_room {
            self.0.push(early);
        }
        has_room
    }

    /// Removes and returns all requests.
    pub(super) fn take(&mut self) -> Vec<EarlyLock> {
        std::mem::take(&mut self.0)
    }

    /// Removes the requests of an owner for locks on a file.
    pub(super) fn cancel(&mut self, session: u64, ino: Ino, owner: LockOwner) -> Vec<CallToken> {
        let is_meant = |early: &mut EarlyLock| {
            !early.is_test
                && (early.session, early.lock.owner) == (session, owner)
                && early.lock.file.ino == ino
        };
        self.0.extract_if(.., is_meant).map(|early| early.call).collect()
    }

    /// Fails the requests of a session that has ended.
    pub(super) fn end(&mut self, output: &mut Output, session: u64) {
        for early in self.0.extract_if(.., |early| early.session == session) {
            output.fail(early.call, Failure::SessionEnded);
        }
    }
}
