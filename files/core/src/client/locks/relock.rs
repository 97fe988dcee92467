//! Relocking: takes the locks of the previous session again after a restart of the server (FS-13).

use crate::held_locks::HeldLock;
use crate::wire::{Lock, LockOwner, Response, SessionRequest};

use super::table::Locks;
use crate::client::interface::effect::Clock;
use crate::client::link::Link;
use crate::client::link::calls::Purpose;
use crate::client::link::output::Output;
use crate::client::nodes::cache::Cache;
use crate::wire::Ino;

/// Requests the next lock. Returns false if there is none.
pub(in crate::client) fn relock_next(
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
pub(in crate::client) fn handle_relocked(
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
