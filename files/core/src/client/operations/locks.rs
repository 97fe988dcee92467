//! Locks. The server keeps them, so that they exclude each other across mounts (FS-3).

use crate::client::interface::operation::Reply;
use crate::client::locks::table::{Locks, WHOLE};
use crate::client::nodes::cache::Cache;
use crate::client::waiting::Event;
use crate::wire::{Errno, Ino, Lock, LockKind, LockOwner, LockRange, Response, SessionRequest};

use super::turn::{Attempt, Stop, Turn, unexpected};

pub(super) fn lock(
    turn: &mut Turn<'_>,
    locks: &mut Locks,
    ino: Ino,
    (owner, kind, range, wait): (LockOwner, LockKind, LockRange, bool),
    response: Option<Response>,
) -> Attempt<Reply> {
    match response {
        Some(Response::Locked(None)) => {
            locks.record(ino, owner, kind, range);
            return Ok(Reply::Done);
        }
        Some(Response::Locked(Some(_))) => return Err(Errno::AGAIN.into()),
        Some(other) => return Err(unexpected(&other)),
        None => {}
    }
    let is_unlock = kind == LockKind::Unlock;
    if locks.unsettled.contains(ino, owner) {
        turn.waiting.wait(Event::Locks, turn.token);
        if is_unlock {
            locks.record(ino, owner, kind, range);
        }
        return Err(Stop::Wait);
    }
    if is_unlock && !turn.cache.node(ino)?.lock_owners.contains(&owner) {
        return Ok(Reply::Done);
    }
    if !is_unlock {
        // The server must have the file. It has if there is a lock to release, which is not
        // delayed: a signal would end the operation and leave the lock.
        turn.require_clean(ino)?;
    }
    let node = turn.cache.node_mut(ino)?;
    node.lock_owners.insert(owner);
    let file = node.handle;
    if is_unlock {
        // From now on it is not taken again after a restart.
        locks.record(ino, owner, kind, range);
    }
    let lock = Lock { file, owner, kind, range, wait, reclaim: false };
    Err(turn.request(SessionRequest::Lock(lock)))
}

/// Returns the request that releases all locks of an owner on a file.
pub(super) fn unlock_all(
    cache: &Cache,
    locks: &mut Locks,
    ino: Ino,
    owner: LockOwner,
) -> Result<SessionRequest, Errno> {
    let (file, kind) = (cache.handle(ino)?, LockKind::Unlock);
    locks.record(ino, owner, kind, WHOLE);
    let lock = Lock { file, owner, kind, range: WHOLE, wait: false, reclaim: false };
    Ok(SessionRequest::Lock(lock))
}

pub(super) fn test_lock(
    turn: &mut Turn<'_>,
    ino: Ino,
    (owner, kind, range): (LockOwner, LockKind, LockRange),
    response: Option<Response>,
) -> Attempt<Reply> {
    match response {
        Some(Response::Locked(conflict)) => Ok(Reply::Conflict(conflict)),
        Some(other) => Err(unexpected(&other)),
        None => {
            turn.require_clean(ino)?;
            let file = turn.cache.handle(ino)?;
            let lock = Lock { file, owner, kind, range, wait: false, reclaim: false };
            Err(turn.request(SessionRequest::TestLock(lock)))
        }
    }
}
