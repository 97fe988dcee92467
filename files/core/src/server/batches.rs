//! Batches: in the order of their numbers, each once, answered when they are durable. A number is applied once (FS-12).

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::limits::MAX_ENTRIES;
use crate::wire::{Batch, BatchDone, Failure, Handle, Ino, LeaseKind, Response};
use bytes::Bytes;

use super::Server;
use super::effect::CallToken;
use super::records::{Changes, NodeEvent, Objection};
use super::session::HeldBatch;
use super::settings::{MAX_APPENDED_BYTES, MAX_BATCH_CALLS, MAX_HELD_BATCHES, MAX_HELD_BYTES};
use crate::store::{AppliedBatch, ClientBatch, ClientId, Store};

/// A batch that is appended and not applied.
#[derive(Debug)]
struct AppendedBatch {
    session: u64,
    number: u64,
    calls: Vec<CallToken>,
    changes: Changes,
    returns: Vec<Handle>,
}

/// Batches that are appended and not applied: at most one of each client, because the one that follows must not be applied if it
/// fails.
#[derive(Debug, Default)]
pub(super) struct Appended {
    batches: BTreeMap<ClientId, AppendedBatch>,
    bytes: usize,
}

impl Appended {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
}

impl<S: Store> Server<S> {
    /// Takes a batch: appends it if it is its turn, holds it back if others come first.
    pub(super) fn receive_batch(
        &mut self,
        number: u64,
        call: CallToken,
        batch: Batch,
        payload: Bytes,
    ) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        if batch.number <= session.applied {
            return self.repeat_outcome(number, call, batch.number);
        }
        let expected = session.expected;
        if session.is_stopped {
            return self.fail(call, Failure::BatchOutOfOrder { expected });
        }
        let appended = self.appended.batches.get_mut(&session.client);
        let appended = appended.filter(|appended| appended.number == batch.number);
        let known = appended.map(|appended| &mut appended.calls);
        let held = session.held.get_mut(&batch.number).map(|held| &mut held.calls);
        if let Some(calls) = known.or(held) {
            // The same batch again: its client has lost a response, or gives up too early.
            if calls.len() >= MAX_BATCH_CALLS {
                return self.fail(call, Failure::BatchOutOfOrder { expected });
            }
            return calls.push(call);
        }
        if session.held_bytes + payload.len() > MAX_HELD_BYTES
            || batch.number.saturating_sub(expected) > MAX_HELD_BATCHES
        {
            // Makes room: what is appended keeps the others waiting.
            self.commit_all();
        }
        let Some(session) = self.sessions.get_mut(number) else { return };
        let expected = session.expected;
        let is_far = batch.number.saturating_sub(expected) > MAX_HELD_BATCHES;
        let is_next = batch.number == expected;
        let is_large = !is_next && session.held_bytes + payload.len() > MAX_HELD_BYTES;
        if session.is_stopped || batch.number < expected || is_far || is_large {
            return self.fail(call, Failure::BatchOutOfOrder { expected });
        }
        session.held_bytes += payload.len();
        session.held.insert(batch.number, HeldBatch { calls: vec![call], batch, payload });
        self.advance(number);
        if self.appended.bytes > MAX_APPENDED_BYTES {
            self.commit();
        }
    }

    /// Appends the next batch of a session, if it has arrived and the one before is applied.
    pub(super) fn advance(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        if session.expected > session.applied + 1 || session.is_stopped {
            return;
        }
        let expected = session.expected;
        let Some(mut held) = session.held.remove(&expected) else { return };
        session.held_bytes -= held.payload.len();
        self.squash(&mut held.batch.records);
        let Some(session) = self.sessions.get(number) else { return };
        let client = session.client;
        match self.check_records(number, session, &held.batch.records) {
            Ok(changes) => {
                for ino in &changes.acquired {
                    self.grant(number, *ino, LeaseKind::Exclusive);
                    // A request that waits for this node recalls the lease.
                    self.queue.touch(*ino);
                }
                self.appended.bytes += held.payload.len();
                let HeldBatch { calls, batch, payload } = held;
                let Batch { number: batch, records, returns } = batch;
                let session = number;
                let appended = AppendedBatch { session, number: batch, calls, changes, returns };
                self.appended.batches.insert(client, appended);
                self.store.append(ClientBatch { client, number: batch, records, payload });
                if let Some(session) = self.sessions.get_mut(number) {
                    session.expected += 1;
                }
            }
            Err(Objection::Wait) => {
                if let Some(session) = self.sessions.get_mut(number) {
                    session.held_bytes += held.payload.len();
                    session.held.insert(expected, held);
                }
            }
            Err(Objection::Refuse(errno)) => {
                for call in held.calls {
                    self.fail_errno(call, errno);
                }
                self.stop(number);
            }
        }
    }

    /// Commits what is appended, and what becomes possible by that.
    pub(super) fn commit_all(&mut self) {
        while !self.appended.is_empty() && !self.is_broken {
            self.commit();
        }
    }

    /// Commits what is appended, and responds.
    pub(super) fn commit(&mut self) {
        if self.appended.is_empty() || self.is_broken {
            return;
        }
        let appended = std::mem::take(&mut self.appended.batches);
        self.appended.bytes = 0;
        let applied = match self.store.commit() {
            Ok(applied) => applied,
            Err(error) => {
                self.is_broken = true;
                self.store_error = Some(error);
                return;
            }
        };
        self.counters.batches += applied.len() as u64;
        let mut appended = appended;
        let mut sessions = Vec::with_capacity(applied.len());
        for batch in applied {
            let found = appended.remove(&batch.client);
            if let Some(appended) = found.filter(|appended| appended.number == batch.number) {
                sessions.push(appended.session);
                self.finish_batch(batch, appended);
            }
        }
        for session in sessions {
            self.advance(session);
        }
    }

    fn finish_batch(&mut self, applied: AppliedBatch, appended: AppendedBatch) {
        let AppliedBatch { number, failed, changed, orphaned, .. } = applied;
        let session = appended.session;
        if let Some(session) = self.sessions.get_mut(session) {
            session.applied = number;
            session.last_batch = self.now;
        }
        self.note_events(session, &appended.changes, failed.map(|(at, _)| at), &changed, orphaned);
        for handle in appended.returns {
            self.give_back(session, handle.ino, LeaseKind::None);
        }
        let changed = changed.into_iter().take(MAX_ENTRIES);
        let changed =
            changed.map(|(ino, attributes)| (self.proofs.handle(ino), attributes)).collect();
        let response = Response::BatchDone(BatchDone { applied: number, failed, changed });
        for call in appended.calls {
            self.respond(call, &response);
        }
        if failed.is_some() {
            self.stop(session);
        }
    }

    /// Draws the consequences of an applied batch for leases and orphans. No record from `failed` on was applied.
    fn note_events(
        &mut self,
        session: u64,
        changes: &Changes,
        failed: Option<u32>,
        changed: &[(Ino, crate::wire::Attributes)],
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
                        self.leases.set(session, *ino, LeaseKind::None);
                        self.queue.touch(*ino);
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
                    self.orphans.remove(*ino);
                }
                NodeEvent::Closed => {
                    closed.insert(*ino);
                }
            }
        }
        let orphans: BTreeSet<Ino> = nameless.into_iter().chain(orphaned).collect();
        for ino in unnamed {
            if !existing.contains(&ino) && !orphans.contains(&ino) {
                self.forget_node(ino);
            }
        }
        for ino in orphans {
            self.keep_orphan(ino, Some(session), closed.contains(&ino));
        }
        for ino in closed {
            if self.orphans.close(session, ino) {
                self.reduce(session, ino, LeaseKind::None);
            }
            self.drop_if_unused(ino);
        }
    }

    /// Answers a batch that was applied before.
    fn repeat_outcome(&mut self, number: u64, call: CallToken, batch: u64) {
        let Some(session) = self.sessions.get(number) else { return };
        let failure = self.store.last_failure(session.client);
        let failed = failure.filter(|failed| failed.number == batch);
        let failed = failed.map(|failed| (failed.record, failed.error));
        // Nothing is said of later ones, which may have failed.
        let done = BatchDone { applied: batch, failed, changed: Vec::new() };
        self.respond(call, &Response::BatchDone(done));
    }

    /// Refuses all batches of a session until its client greets anew.
    fn stop(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        session.is_stopped = true;
        let expected = session.expected;
        self.refuse_held(number, &Failure::BatchOutOfOrder { expected });
    }

    /// Refuses the batches that a session holds back.
    pub(super) fn refuse_held(&mut self, number: u64, failure: &Failure) {
        let Some(session) = self.sessions.get_mut(number) else { return };
        session.held_bytes = 0;
        for held in std::mem::take(&mut session.held).into_values() {
            for call in held.calls {
                self.fail(call, failure.clone());
            }
        }
    }
}
