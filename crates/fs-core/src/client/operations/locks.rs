//! Locks. The server keeps them, so that they exclude between mounts (FS-3).

use apus_fs_wire::{Errno, Ino, Lock, LockKind, LockOwner, LockRange, Response, SessionRequest};

use super::{Turn, unexpected};
use crate::client::operation::Reply;
use crate::client::{Attempt, Client};

impl Client {
    pub(super) fn lock(
        &mut self,
        turn: &Turn,
        ino: Ino,
        (owner, kind, range, wait): (LockOwner, LockKind, LockRange, bool),
        response: Option<Response>,
    ) -> Attempt<Reply> {
        match response {
            Some(Response::Locked(None)) => Ok(Reply::Done),
            Some(Response::Locked(Some(_))) => Err(Errno::AGAIN.into()),
            Some(other) => Err(unexpected(&other)),
            None => {
                let has_locks = self.node(ino)?.lock_owners.contains(&owner);
                if kind == LockKind::Unlock && !has_locks {
                    return Ok(Reply::Done);
                }
                // The server must know the file.
                self.clean(turn, ino)?;
                let node = self.node_mut(ino)?;
                node.lock_owners.insert(owner);
                let file = node.handle;
                Err(self.ask(turn, SessionRequest::Lock(Lock { file, owner, kind, range, wait })))
            }
        }
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
                let lock = Lock { file, owner, kind, range, wait: false };
                Err(self.ask(turn, SessionRequest::TestLock(lock)))
            }
        }
    }
}
