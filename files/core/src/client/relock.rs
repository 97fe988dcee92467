//! Relocking: takes the locks of the previous session again after a restart of the server (FS-13).

use crate::held_locks::HeldLock;
use crate::wire::{Lock, LockOwner, Response, SessionRequest};

use super::cache::Cache;
use super::calls::Purpose;
use super::effect::Clock;
use super::link::Link;
use super::locks::Locks;
use super::output::Output;
use crate::wire::Ino;

/// Requests the next lock. Returns false if there is none.
pub(super) fn relock_next(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    clock: &Clock,
) -> bool {
    while let Some((ino, HeldLock { holder: owner, kind, range })) = locks.next_relock() {
        if let Some(node) = cache.get(ino) {
            let file = node.handle;
            let lock = Lock { file, owner, kind, range, wait: false, reclaim: true };
            link.call(clock, Purpose::Relock(ino, owner), SessionRequest::Lock(lock));
            return true;
        }
        locks.pop_relock();
    }
    false
}

/// Handles the response to the last request. Returns false if no lock was to be taken.
pub(super) fn handle_relocked(
    output: &mut Output,
    locks: &mut Locks,
    (ino, owner): (Ino, LockOwner),
    response: &Response,
) -> bool {
    let Some((_, lock)) = locks.pop_relock() else { return false };
    if *response != Response::Locked(None) {
        locks.lose(ino, lock);
        output.report_lost_lock(ino, owner);
    }
    true
}
