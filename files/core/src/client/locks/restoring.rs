//! Restoring: withdraws lock requests of interrupted operations, and has the server restore the
//! locks that their owners held before (FSCLIENT-8).

use crate::held_locks::HeldLock;
use crate::wire::{Ino, Lock, LockKind, LockOwner, LockRange, Response, SessionRequest};

use super::table::Locks;
use super::unsettled::SettlingStep;
use crate::client::interface::effect::{Clock, OpToken};
use crate::client::link::Link;
use crate::client::link::calls::{Purpose, backoff};
use crate::client::link::session::SessionState;
use crate::client::nodes::cache::Cache;
use crate::client::waiting::{Event, Waiting};

/// Withdraws the lock request of an interrupted operation, if it was sent. `waits`: the request may
/// wait at the server, and is withdrawn there with all others of the owner on the file; other
/// requests get a response soon.
pub(in crate::client) fn withdraw_lock(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &Waiting,
    clock: &Clock,
    (token, waits): (OpToken, bool),
    (ino, owner, range): (Ino, LockOwner, LockRange),
) {
    if link.calls.find(&Purpose::Operation(token)).is_some() {
        locks.unsettled.add_request((ino, owner, range), token);
        if waits && let Some(request) = cancel_request(cache, ino, owner) {
            link.call(clock, Purpose::CancelLock(ino, owner), request);
        }
    } else if link.session.state != SessionState::Live && waiting.waits_for(Event::Session, token) {
        // It may have sent a request before the client greeted again, and the response was lost.
        locks.unsettled.doubt((ino, owner, range));
    }
}

fn cancel_request(cache: &Cache, ino: Ino, owner: LockOwner) -> Option<SessionRequest> {
    let file = cache.get(ino)?.handle;
    Some(SessionRequest::CancelLock { file, owner })
}

/// Withdraws a request again that is still unanswered: it may have reached the server after its
/// withdrawal.
pub(in crate::client) fn handle_cancelled(
    link: &mut Link,
    cache: &Cache,
    locks: &Locks,
    clock: &Clock,
    (ino, owner): (Ino, LockOwner),
) {
    if locks.unsettled.is_unanswered(ino, owner)
        && let Some(request) = cancel_request(cache, ino, owner)
    {
        let call = link.calls.add(clock.now, Purpose::CancelLock(ino, owner), Some(request));
        if let Some(outstanding) = link.calls.get_mut(call) {
            outstanding.retry_at = Some(clock.now + backoff(1));
        }
    }
}

/// Handles the response to a lock request, if its operation was interrupted.
pub(in crate::client) fn handle_lock_response(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &mut Waiting,
    clock: &Clock,
    (token, response): (OpToken, &Response),
) {
    let is_granted = *response == Response::Locked(None);
    if let Some((ino, owner)) = locks.unsettled.handle_response(token, is_granted) {
        settle(link, cache, locks, waiting, clock, (ino, owner));
    }
}

/// Restores all unknown locks in a new session: the server may have executed calls of the previous
/// one.
pub(in crate::client) fn restore_all(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &mut Waiting,
    clock: &Clock,
) {
    locks.unsettled.doubt_all();
    for owner in locks.unsettled.owners() {
        settle(link, cache, locks, waiting, clock, owner);
    }
}

fn settle(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &mut Waiting,
    clock: &Clock,
    (ino, owner): (Ino, LockOwner),
) {
    let step = locks.settle(ino, owner);
    carry_out(link, cache, locks, waiting, clock, (ino, owner), step);
}

/// Handles the response to a request of [`Purpose::Restore`].
pub(in crate::client) fn handle_restored(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &mut Waiting,
    clock: &Clock,
    (ino, part): (Ino, HeldLock<LockOwner>),
    response: &Response,
) {
    let owner = part.holder;
    if part.kind != LockKind::Unlock && *response != Response::Locked(None) {
        locks.lose_range(ino, part);
        link.output.report_lost_lock(ino, owner);
    }
    let step = locks.next_part(ino, owner);
    carry_out(link, cache, locks, waiting, clock, (ino, owner), step);
}

/// Takes the next step. A file that is gone has no lock to restore.
fn carry_out(
    link: &mut Link,
    cache: &Cache,
    locks: &mut Locks,
    waiting: &mut Waiting,
    clock: &Clock,
    (ino, owner): (Ino, LockOwner),
    mut step: SettlingStep,
) {
    loop {
        match step {
            SettlingStep::Wait => return,
            SettlingStep::Settled => return waiting.wake_for(Event::Locks),
            SettlingStep::Restore(kind, range) => {
                if let Some(node) = cache.get(ino) {
                    let file = node.handle;
                    let lock = Lock { file, owner, kind, range, wait: false, reclaim: false };
                    let part = HeldLock { holder: owner, kind, range };
                    link.call(clock, Purpose::Restore(ino, part), SessionRequest::Lock(lock));
                    return;
                }
                step = locks.stop_restoring(ino, owner);
            }
        }
    }
}
