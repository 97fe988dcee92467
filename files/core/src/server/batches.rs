//! Batches: applied in the order of their numbers, each once, and answered when they are durable. A
//! number is applied once (FS-12).

use std::collections::BTreeSet;

use crate::store::{AppliedBatch, ClientBatch, Store};
use crate::wire::limits::MAX_ENTRIES;
use crate::wire::{Attributes, Batch, BatchDone, Errno, Failure, Ino, LeaseKind, Record, Response};
use bytes::Bytes;

use super::access::Access;
use super::appended::AppendedBatch;
use super::core::Core;
use super::effect::CallToken;
use super::grants::grant;
use super::orphan_care::{drop_if_unused, forget_node, keep_orphan};
use super::output::Output;
use super::permissions::judge;
use super::records::{Changes, NodeEvent, Objection, check_records};
use super::session::HeldBatch;
use super::settings::{MAX_APPENDED_BYTES, MAX_BATCH_CALLS, MAX_HELD_BATCHES, RECORD_PROGRESS};

/// Handles a batch: appends it if it is next, holds it if earlier ones are missing.
pub(super) fn receive_batch<S: Store>(
    core: &mut Core<S>,
    number: u64,
    call: CallToken,
    batch: Batch,
    payload: Bytes,
) {
    let Some(session) = core.access.sessions.get_mut(number) else { return };
    if batch.number <= session.applied {
        return repeat_outcome(&core.access, &mut core.output, number, call, batch.number);
    }
    let expected = session.expected;
    if session.is_stopped {
        return core.output.fail(call, Failure::BatchOutOfOrder { expected });
    }
    let appended = core.appended.batches.get_mut(&session.client);
    let appended = appended.filter(|appended| appended.number == batch.number);
    let known = appended.map(|appended| &mut appended.calls);
    let held = session.held.get_mut(&batch.number).map(|held| &mut held.calls);
    if let Some(calls) = known.or(held) {
        // The same batch again: its client has lost a response, or gives up too early.
        if calls.len() >= MAX_BATCH_CALLS {
            return core.output.fail(call, Failure::BatchOutOfOrder { expected });
        }
        return calls.push(call);
    }
    let host = session.host;
    if !core.access.held_shares.has_room(host, payload.len())
        || batch.number.saturating_sub(expected) > MAX_HELD_BATCHES
    {
        // Makes room: appended batches delay the others.
        commit_all(core);
    }
    let Some(session) = core.access.sessions.get_mut(number) else { return };
    let expected = session.expected;
    let is_far = batch.number.saturating_sub(expected) > MAX_HELD_BATCHES;
    let is_next = batch.number == expected;
    let is_large = !is_next && !core.access.held_shares.has_room(host, payload.len());
    if session.is_stopped || batch.number < expected || is_far || is_large {
        return core.output.fail(call, Failure::BatchOutOfOrder { expected });
    }
    core.access.held_shares.add(host, payload.len());
    session.held.insert(batch.number, HeldBatch { calls: vec![call], batch, payload });
    advance(core, number);
    if core.appended.bytes > MAX_APPENDED_BYTES {
        commit(core);
    }
}

/// Appends the next batch of a session, if it has arrived and the one before is applied.
pub(super) fn advance<S: Store>(core: &mut Core<S>, number: u64) {
    let Some(session) = core.access.sessions.get_mut(number) else { return };
    if session.expected > session.applied + 1 || session.is_stopped {
        return;
    }
    let expected = session.expected;
    let Some(mut held) = session.held.remove(&expected) else { return };
    core.access.held_shares.remove(session.host, held.payload.len());
    let client = session.client;
    match check_batch(&mut core.access, number, &mut held.batch.records) {
        Ok(changes) => {
            for ino in &changes.acquired {
                grant(&mut core.access, number, *ino, LeaseKind::Exclusive);
                // A request that waits for this node recalls the lease.
                core.access.holdings.queue.touch(*ino);
            }
            core.appended.bytes += held.payload.len();
            let HeldBatch { calls, batch, payload } = held;
            let Batch { number: batch, records, returns } = batch;
            let session = number;
            let progress = payload.len() as u64 + records.len() as u64 * RECORD_PROGRESS;
            let appended =
                AppendedBatch { session, number: batch, progress, calls, changes, returns };
            core.appended.batches.insert(client, appended);
            core.access.store.append(ClientBatch { client, number: batch, records, payload });
            if let Some(session) = core.access.sessions.get_mut(number) {
                session.expected += 1;
            }
        }
        Err(Objection::Wait) => {
            if let Some(session) = core.access.sessions.get_mut(number) {
                core.access.held_shares.add(session.host, held.payload.len());
                session.held.insert(expected, held);
            }
        }
        Err(Objection::Refuse(errno)) => {
            for call in held.calls {
                core.output.fail_errno(call, errno);
            }
            stop(core, number);
        }
    }
}

/// Checks the records of a batch: whether the session has the leases for them, and the rights.
fn check_batch<S: Store>(
    access: &mut Access<S>,
    number: u64,
    records: &mut [Record],
) -> Result<Changes, Objection> {
    let session = access.sessions.get(number).ok_or(Errno::STALE)?;
    let changes = check_records(access, number, session, records)?;
    judge(access, number, records)?;
    Ok(changes)
}

/// Commits appended batches, and those that become possible.
pub(super) fn commit_all<S: Store>(core: &mut Core<S>) {
    while !core.appended.is_empty() && !core.access.is_broken {
        commit(core);
    }
}

/// Commits appended batches, and responds.
pub(super) fn commit<S: Store>(core: &mut Core<S>) {
    if core.appended.is_empty() || core.access.is_broken {
        return;
    }
    let appended = std::mem::take(&mut core.appended.batches);
    core.appended.bytes = 0;
    let applied = match core.access.store.commit() {
        Ok(applied) => applied,
        Err(error) => {
            core.access.break_down(error);
            return;
        }
    };
    core.output.counters.batches += applied.len() as u64;
    let mut appended = appended;
    let mut sessions = Vec::with_capacity(applied.len());
    for batch in applied {
        let found = appended.remove(&batch.client);
        if let Some(appended) = found.filter(|appended| appended.number == batch.number) {
            sessions.push(appended.session);
            finish_batch(core, batch, appended);
        }
    }
    for session in sessions {
        advance(core, session);
    }
}

fn finish_batch<S: Store>(core: &mut Core<S>, applied: AppliedBatch, appended: AppendedBatch) {
    let AppliedBatch { number, failed, changed, orphaned, .. } = applied;
    let session = appended.session;
    if let Some(session) = core.access.sessions.get_mut(session) {
        session.applied = number;
        session.last_batch = core.access.now;
        session.progress = session.progress.saturating_add(appended.progress);
    }
    note_events(core, session, &appended.changes, failed.map(|(at, _)| at), &changed, orphaned);
    for handle in appended.returns {
        core.access.holdings.give_back(session, handle.ino, LeaseKind::None);
    }
    let changed = changed.into_iter().take(MAX_ENTRIES);
    let changed =
        changed.map(|(ino, attributes)| (core.access.proofs.handle(ino), attributes)).collect();
    let response = Response::BatchDone(BatchDone { applied: number, failed, changed });
    for call in appended.calls {
        core.output.respond(call, &response);
    }
    if failed.is_some() {
        stop(core, session);
    }
}

/// Updates leases and orphans after an applied batch. No record from `failed` on was applied.
fn note_events<S: Store>(
    core: &mut Core<S>,
    session: u64,
    changes: &Changes,
    failed: Option<u32>,
    changed: &[(Ino, Attributes)],
    orphaned: Vec<Ino>,
) {
    let existing: BTreeSet<Ino> = changed.iter().map(|(ino, _)| *ino).collect();
    let mut nameless = BTreeSet::new();
    let mut closed = BTreeSet::new();
    let mut unnamed = BTreeSet::new();
    for (at, ino, event) in &changes.events {
        let is_applied = failed.is_none_or(|failed| *at < failed);
        match event {
            NodeEvent::Created | NodeEvent::CreatedWithoutName if !is_applied => {
                if !existing.contains(ino) {
                    core.access.holdings.leases.set(session, *ino, LeaseKind::None);
                    core.access.holdings.queue.touch(*ino);
                }
            }
            _ if !is_applied => {}
            NodeEvent::Created => {}
            NodeEvent::CreatedWithoutName => {
                nameless.insert(*ino);
            }
            NodeEvent::Unnamed => {
                unnamed.insert(*ino);
            }
            NodeEvent::Named => {
                nameless.remove(ino);
                core.orphans.remove(*ino);
            }
            NodeEvent::Closed => {
                closed.insert(*ino);
            }
        }
    }
    let orphans: BTreeSet<Ino> = nameless.into_iter().chain(orphaned).collect();
    for ino in unnamed {
        if !existing.contains(&ino) && !orphans.contains(&ino) {
            forget_node(core, ino);
        }
    }
    for ino in orphans {
        keep_orphan(core, ino, Some(session), closed.contains(&ino));
    }
    for ino in closed {
        if core.orphans.close(session, ino) {
            core.access.holdings.reduce(session, ino, LeaseKind::None);
        }
        drop_if_unused(core, ino);
    }
}

/// Answers a batch that was applied before.
fn repeat_outcome<S: Store>(
    access: &Access<S>,
    output: &mut Output,
    number: u64,
    call: CallToken,
    batch: u64,
) {
    let Some(session) = access.sessions.get(number) else { return };
    let failure = access.store.last_failure(session.client);
    let failed = failure.filter(|failed| failed.number == batch);
    let failed = failed.map(|failed| (failed.record, failed.error));
    // Later batches are not reported: they may have failed.
    let done = BatchDone { applied: batch, failed, changed: Vec::new() };
    output.respond(call, &Response::BatchDone(done));
}

/// Refuses all batches of a session until its client greets again.
fn stop<S: Store>(core: &mut Core<S>, number: u64) {
    let Some(session) = core.access.sessions.get_mut(number) else { return };
    session.is_stopped = true;
    let expected = session.expected;
    refuse_held(core, number, &Failure::BatchOutOfOrder { expected });
}

/// Refuses the batches that a session holds back.
pub(super) fn refuse_held<S: Store>(core: &mut Core<S>, number: u64, failure: &Failure) {
    let Some(session) = core.access.sessions.get_mut(number) else { return };
    for held in std::mem::take(&mut session.held).into_values() {
        core.access.held_shares.remove(session.host, held.payload.len());
        for call in held.calls {
            core.output.fail(call, failure.clone());
        }
    }
}
