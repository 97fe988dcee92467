//! Lock requests of clients.
//!
//! After a restart, clients first take their locks again: other requests wait for the end of the
//! grace period (FS-13).

use std::time::Duration;

use crate::rights::access::{READ, WRITE};
use crate::store::Store;
use crate::wire::{Errno, Handle, Ino, Lock, LockKind, LockOwner, LockRange, Response};

use super::core::Core;
use super::early_locks::EarlyLock;
use super::effect::CallToken;
use super::ending::end_session;
use super::lock_owner::{HeldLock, Holder};
use super::locks::{LockOutcome, Served};
use super::output::Output;
use super::settings::LOCK_CHECKS;

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
    let Some(host) = core.access.host(session) else { return };
    let wait = lock.wait.then_some(call);
    let mut served = Vec::new();
    let outcome = core.locks.lock(host, lock.file.ino, wanted, wait, &mut served);
    served.push((call, outcome));
    answer_all(&mut core.output, served);
}

fn answer_all(output: &mut Output, served: Vec<Served>) {
    for (call, outcome) in served {
        answer(output, call, &outcome);
    }
}

fn answer(output: &mut Output, call: CallToken, outcome: &LockOutcome) {
    match outcome {
        LockOutcome::Taken => output.respond(call, &Response::Locked(None)),
        LockOutcome::Conflict(conflict) => output.respond(call, &Response::Locked(Some(*conflict))),
        LockOutcome::Waits => {}
        LockOutcome::Deadlock => output.fail_errno(call, Errno::DEADLK),
        LockOutcome::Full => output.fail_errno(call, Errno::NOLCK),
    }
}

/// Answers lock requests that waited, and notes which sessions others wait for.
pub(super) fn serve_ready_locks<S: Store>(core: &mut Core<S>) {
    let mut served = Vec::new();
    core.locks.serve_ready(LOCK_CHECKS, &mut served);
    answer_all(&mut core.output, served);
    for session in core.locks.take_changed() {
        core.access.sessions.watch(session, core.locks.is_blocking(session));
    }
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
    let Some(host) = core.access.host(session) else { return };
    let mut served = Vec::new();
    let outcome = core.locks.lock(host, lock.file.ino, wanted, None, &mut served);
    answer_all(&mut core.output, served);
    match outcome {
        LockOutcome::Taken => core.output.respond(call, &Response::Locked(None)),
        _ => core.output.fail_errno(call, Errno::NOLCK),
    }
}

/// Delays a request until all clients have had time to take their locks again.
fn postpone_lock<S: Store>(
    core: &mut Core<S>,
    session: u64,
    call: CallToken,
    lock: &Lock,
    is_test: bool,
) {
    let Some(host) = core.access.host(session) else { return };
    if !core.early_locks.add(EarlyLock { session, host, call, lock: *lock, is_test }) {
        core.output.fail_errno(call, Errno::NOLCK);
    }
}

/// Serves the requests that waited for the end of the grace period, in the order of arrival.
pub(super) fn serve_early_locks<S: Store>(core: &mut Core<S>) {
    for early in core.early_locks.take() {
        let EarlyLock { session, call, lock: wanted, is_test, .. } = early;
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
    while let Some(session) = core.locks.blocker(ino, wanted)
        && core.access.is_silent(session)
    {
        if end_session(core, session, true).is_none() {
            return;
        }
    }
}

/// Ends sessions whose locks are waited for, and whose term has passed.
pub(super) fn check_locks<S: Store>(core: &mut Core<S>) {
    while let Some((session, heard)) = core.access.sessions.first_watched()
        && core.access.now >= heard + core.access.settings.term
    {
        if end_session(core, session, true).is_none() {
            return;
        }
        serve_ready_locks(core);
    }
}

/// Returns when [`check_locks`] or [`serve_ready_locks`] is needed.
pub(super) fn lock_deadline<S: Store>(core: &Core<S>) -> Option<Duration> {
    if core.locks.has_ready() {
        return Some(core.access.now);
    }
    let (_, heard) = core.access.sessions.first_watched()?;
    Some(heard + core.access.settings.term)
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
    let ino = lock.file.ino;
    // A process locks what it has open, for reading or for writing.
    let may = core.access.may_use(session, ino, READ);
    if let Err(errno) = may.or_else(|_| core.access.may_use(session, ino, WRITE)) {
        core.output.fail_errno(call, errno);
        return None;
    }
    let whole = LockRange { start: 0, end: u64::MAX };
    let range = if lock.owner.is_flock { whole } else { lock.range };
    let holder = Holder { session, owner: lock.owner };
    Some(HeldLock { holder, kind: lock.kind, range })
}
