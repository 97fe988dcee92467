//! Locks. The server keeps them, so that they exclude between mounts (FS-3).

use crate::wire::{Errno, Ino, Lock, LockKind, LockOwner, LockRange, Response, SessionRequest};

use super::{Turn, unexpected};
use crate::client::operation::Reply;
use crate::client::{Attempt, Client, Stop};
use crate::held_locks::{HeldLock, replace};

/// All bytes of a file.
const WHOLE: LockRange = LockRange { start: 0, end: u64::MAX };

/// The bytes that a request is about.
pub(super) fn locked_range(owner: LockOwner, asked: LockRange) -> LockRange {
    if owner.is_flock { WHOLE } else { asked }
}

impl Client {
    pub(super) fn lock(
        &mut self,
        turn: &Turn,
        ino: Ino,
        (owner, kind, range, wait): (LockOwner, LockKind, LockRange, bool),
        response: Option<Response>,
    ) -> Attempt<Reply> {
        match response {
            Some(Response::Locked(None)) => {
                self.note_lock(ino, owner, kind, range);
                Ok(Reply::Done)
            }
            Some(Response::Locked(Some(_))) => Err(Errno::AGAIN.into()),
            Some(other) => Err(unexpected(&other)),
            None => {
                if self.unsettled.wait(ino, owner, turn.token) {
                    if kind == LockKind::Unlock {
                        self.note_lock(ino, owner, kind, range);
                    }
                    return Err(Stop::Wait);
                }
                let has_locks = self.node(ino)?.lock_owners.contains(&owner);
                if kind == LockKind::Unlock && !has_locks {
                    return Ok(Reply::Done);
                }
                if kind != LockKind::Unlock {
                    // The server must know the file. It does if there is something to unlock, which is not put off: a signal would end
                    // the operation, and leave the lock.
                    self.clean(turn, ino)?;
                }
                let node = self.node_mut(ino)?;
                node.lock_owners.insert(owner);
                let file = node.handle;
                if kind == LockKind::Unlock {
                    // From now on it is not taken again.
                    self.note_lock(ino, owner, kind, range);
                }
                let lock = Lock { file, owner, kind, range, wait, reclaim: false };
                Err(self.ask(turn, SessionRequest::Lock(lock)))
            }
        }
    }

    /// Notes what an owner has, for a server that was restarted.
    fn note_lock(&mut self, ino: Ino, holder: LockOwner, kind: LockKind, range: LockRange) {
        let range = locked_range(holder, range);
        let locks = self.locks.entry(ino).or_default();
        replace(locks, HeldLock { holder, kind, range });
        if locks.is_empty() {
            self.locks.remove(&ino);
        }
        self.locks_changed(ino, holder);
    }

    /// The request that takes all locks from an owner.
    pub(super) fn unlock(&mut self, ino: Ino, owner: LockOwner) -> Result<SessionRequest, Errno> {
        let (file, kind) = (self.handle(ino)?, LockKind::Unlock);
        self.note_lock(ino, owner, kind, WHOLE);
        let lock = Lock { file, owner, kind, range: WHOLE, wait: false, reclaim: false };
        Ok(SessionRequest::Lock(lock))
    }

    pub(super) fn test_lock(
        &mut self,
        turn: &Turn,
        ino: Ino,
        (owner, kind, range): (LockOwner, LockKind, LockRange),
        response: Option<Response>,
    ) -> Attempt<Reply> {
        match response {
            Some(Response::Locked(conflict)) => Ok(Reply::Conflict(conflict)),
            Some(other) => Err(unexpected(&other)),
            None => {
                self.clean(turn, ino)?;
                let file = self.handle(ino)?;
                let lock = Lock { file, owner, kind, range, wait: false, reclaim: false };
                Err(self.ask(turn, SessionRequest::TestLock(lock)))
            }
        }
    }
}
