//! Lock requests that wait for the end of the grace period.

use crate::wire::{Failure, Ino, Lock, LockOwner};

use super::effect::CallToken;
use super::output::Output;
use super::settings::WAITING_LOCKS;
use super::shares::{Host, Shares};

/// A request that waits for the end of the grace period.
#[derive(Debug)]
pub(super) struct EarlyLock {
    pub(super) session: u64,
    pub(super) host: Host,
    pub(super) call: CallToken,
    pub(super) lock: Lock,
    pub(super) is_test: bool,
}

/// Requests in the order of their arrival.
#[derive(Debug)]
pub(super) struct EarlyLocks {
    requests: Vec<EarlyLock>,
    shares: Shares,
}

impl Default for EarlyLocks {
    fn default() -> Self {
        Self { requests: Vec::new(), shares: Shares::new(WAITING_LOCKS) }
    }
}

impl EarlyLocks {
    /// Adds a request. Returns false if its host has too many.
    pub(super) fn add(&mut self, early: EarlyLock) -> bool {
        let has_room = self.shares.has_room(early.host, 1);
        if has_room {
            self.shares.add(early.host, 1);
            self.requests.push(early);
        }
        has_room
    }

    /// Removes and returns all requests.
    pub(super) fn take(&mut self) -> Vec<EarlyLock> {
        std::mem::take(self).requests
    }

    /// Removes the requests of an owner for locks on a file.
    pub(super) fn cancel(&mut self, session: u64, ino: Ino, owner: LockOwner) -> Vec<CallToken> {
        let is_meant = |early: &mut EarlyLock| {
            !early.is_test
                && (early.session, early.lock.owner) == (session, owner)
                && early.lock.file.ino == ino
        };
        let Self { requests, shares } = self;
        let withdrawn = requests.extract_if(.., is_meant);
        withdrawn.inspect(|early| shares.remove(early.host, 1)).map(|early| early.call).collect()
    }

    /// Fails the requests of a session that has ended.
    pub(super) fn end(&mut self, output: &mut Output, session: u64) {
        for early in self.requests.extract_if(.., |early| early.session == session) {
            self.shares.remove(early.host, 1);
            output.fail(early.call, Failure::SessionEnded);
        }
    }
}
