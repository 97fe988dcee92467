//! Lock requests of clients.
//!
//! After a restart, clients first take their locks again: other requests wait for the end of the
//! grace period (FS-13).

use std::time::Duration;

use crate::store::Store;
use crate::wire::{Errno, Handle, Ino, Lock, LockKind, LockOwner, LockRange, Response};

use super::core::Core;
use super::early_locks::EarlyLock;
use super::effect::CallToken;
use super::ending::end_session;
use super::locks::{HeldLock, Holder, LockOutcome};

/// Acquires or releases a lock.
pub(super) fn lock<S: Store>(core: &mut Core<S>, session: u64, call: CallToken, lock: &Lock) {
    if lock.reclaim {
        return reclaim_lock(core, session, call, lock);
    }
    if core.access.is_grace() && lock.kind != LockKind::Unlock {
        return postpone_lock(core, session, call, lock, false);
    }
    let Some(wanted) = wanted_lock(core, session, call, lock) else { return };
    end_silent_lockers(core, lock.file.ino, &wanted);
    let mut granted = Vec::new();
    let wait = lock.wait.then_some(call);
    match core.locks.lock(lock.file.ino, wanted, wait, &mut granted) {
        LockOutcome::Taken => core.output.respond(call, &Response::Locked(None)),
        LockOutcome::Conflict(conflict) => {
            core.output.respond(call, &Response::Locked(Some(conflict)));
        }
        LockOutcome::Waits => {}
        LockOutcome::Deadlock => core.output.fail_errno(call, Errno::DEADLK),
        LockOutcome::Full => core.output.fail_errno(call, Errno::NOLCK),
    }
    core.output.locks_granted(&granted);
}

/// Returns the lock that prevents another one.
pub(super) fn test_lock<S: Store>(core: &mut Core<S>, session: u64, call: CallToken, lock: &Lock) {
    if core.access.is_grace() {
        return postpone_lock(core, session, call, lock, true);
    }
    let Some(wanted) = wanted_lock(core, session, call, lock) else { return };
    end_silent_lockers(core, lock.file.ino, &wanted);
    let is_unlock = lock.kind == LockKind::Unlock;
    let conflict = core.locks.conflict(lock.file.ino, &wanted).filter(|_| !is_unlock);
    core.output.respond(call, &Response::Locked(conflict));
}

/// Gives a lock back to the client that had it before the server was restarted.
fn reclaim_lock<S: Store>(core: &mut Core<S>, session: u64, call: CallToken, lock: &Lock) {
    let Some(wanted) = wanted_lock(core, session, call, lock) else { return };
    // The first response may be lost.
    if core.locks.is_held(lock.file.ino, &wanted) {
        return core.output.respond(call, &Response::Locked(None));
    }
    let is_fenced = core.access.sessions.get(session).is_none_or(|session| session.is_fenced);
    if !core.access.is_grace() || is_fenced {
        return core.output.fail_errno(call, Errno::NOLCK);
    }
    let mut granted = Vec::new();
    match core.locks.lock(lock.file.ino, wanted, None, &mut granted) {
        LockOutcome::Taken => core.output.respond(call, &Response::Locked(None)),
        _ => core.output.fail_errno(call, Errno::NOLCK),
    }
    core.output.locks_granted(&granted);
}

/// Delays a request until all clients have had time to take their locks again.
fn postpone_lock<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    lock: &Lock,
    is_test: bool,
) {
    if !core.early_locks.add(EarlyLock { session, call, lock: *lock, is_test }) {
        core.output.fail_errno(call, Errno::NOLCK);
    }
}

/// Serves the requests that waited for the end of the grace period, in the order of arrival.
pub(super) fn serve_early_locks<S: Store>(core: &mut Core<S>) {
    for early in core.early_locks.take() {
        let EarlyLock { session, call, lock: wanted, is_test } = early;
        if is_test {
            test_lock(core, session, call, &wanted);
        } else {
            lock(core, session, call, &wanted);
        }
    }
}

/// Withdraws lock requests that wait.
pub(super) fn cancel_lock<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    file: Handle,
    owner: LockOwner,
) {
    let early = core.early_locks.cancel(session, file.ino, owner);
    let withdrawn = core.locks.cancel(file.ino, Holder { session, owner });
    for call in early.into_iter().chain(withdrawn) {
        core.output.fail_errno(call, Errno::INTR);
    }
    core.output.respond(call, &Response::Done);
}

/// Ends sessions whose locks conflict with a requested one, and whose term has passed.
fn end_silent_lockers<S: Store>(core: &mut Core<S>, ino: Ino, wanted: &HeldLock) {
    for holder in core.locks.blockers(ino, wanted) {
        if wanted.kind != LockKind::Unlock && core.access.is_silent(holder.session) {
            end_session(core, holder.session, true);
        }
    }
}

/// Ends sessions whose locks are waited for, and whose term has passed.
pub(super) fn check_locks<S: Store>(core: &mut Core<S>) {
    for session in core.locks.blocking() {
        if core.access.is_silent(session) {
            end_session(core, session, true);
        }
    }
}

/// Returns when [`check_locks`](Self::check_locks) is needed.
pub(super) fn lock_deadline<S: Store>(core: &Core<S>) -> Option<Duration> {
    let blocking = core.locks.blocking();
    let blocking = blocking.iter().filter_map(|number| core.access.sessions.get(*number));
    blocking.map(|session| session.last_heard + core.access.settings.term).min()
}

/// Checks a request; responds and returns `None` if it is refused.
fn wanted_lock<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    lock: &Lock,
) -> Option<HeldLock> {
    if !core.access.is_valid(session, lock.file) {
        core.output.fail_errno(call, Errno::STALE);
        return None;
    }
    let whole = LockRange { start: 0, end: u64::MAX };
    let range = if lock.owner.is_flock { whole } else { lock.range };
    let holder = Holder { session, owner: lock.owner };
    Some(HeldLock { holder, kind: lock.kind, range })
}
