//! Taking locks again that the client had before the server was restarted (FS-13).

use crate::wire::{Ino, Lock, LockOwner, Response, SessionRequest};

use super::Client;
use super::calls::Purpose;
use super::effect::{ClientEffect, Clock};
use crate::held_locks::HeldLock;

impl Client {
    /// Asks for the next one. Returns false if none is left.
    pub(super) fn relock_next(&mut self, clock: &Clock) -> bool {
        while let Some((ino, HeldLock { holder: owner, kind, range })) = self.to_relock.last() {
            let (ino, owner) = (*ino, *owner);
            if let Some(node) = self.nodes.get(&ino) {
                let (file, kind, range) = (node.handle, *kind, *range);
                let lock = Lock { file, owner, kind, range, wait: false, reclaim: true };
                self.call(clock, Purpose::Relock(ino, owner), SessionRequest::Lock(lock));
                return true;
            }
            self.to_relock.pop();
        }
        false
    }

    /// Takes the response to the last request.
    pub(super) fn relocked(
        &mut self,
        clock: &Clock,
        ino: Ino,
        owner: LockOwner,
        response: &Response,
    ) {
        let Some((_, lock)) = self.to_relock.pop() else { return };
        if *response != Response::Locked(None) {
            if let Some(locks) = self.locks.get_mut(&ino) {
                locks.retain(|held| *held != lock);
            }
            self.lock_lost(ino, owner);
        }
        self.reclaim_next(clock);
    }

    /// Says that a lock is lost which an application believes that it has.
    pub(super) fn lock_lost(&mut self, ino: Ino, owner: LockOwner) {
        self.counters.locks_lost += 1;
        let kind = if owner.is_flock { "flock" } else { "fcntl" };
        let warning =
            format!("a lock ({kind}) on file {} is lost: it may be another client's", ino.0);
        self.effects.push_back(ClientEffect::Warn(warning));
    }
}
