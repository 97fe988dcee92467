//! Operations that have not ended, and the event that each of them waits for.
//!
//! An operation is in at most one list of waiters. An event moves the operations that waited for it
//! to the ready queue, in the order of their arrival; they are then attempted again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use crate::wire::Response;

use super::interface::effect::OpToken;
use super::interface::operation::{Caller, Operation};

/// An operation that has not ended.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) caller: Caller,
    pub(super) operation: Operation,
    /// The response of a call that only this operation uses.
    pub(super) response: Option<Response>,
    pub(super) since: Duration,
}

/// An event that several operations can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The session is live.
    Session,
    /// A recall was answered.
    Recall,
    /// The log has room.
    Room,
    /// The lock state of an owner is known again.
    Locks,
}

/// All operations that have not ended.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pending: BTreeMap<OpToken, Pending>,
    /// Operations to attempt.
    ready: VecDeque<OpToken>,
    /// Waiters of each [`Event`].
    lists: [Vec<OpToken>; 4],
    /// Operations that wait until a batch is applied.
    for_batch: Vec<(u64, OpToken)>,
    /// Batch of an operation that completes with it: a sync, or an operation whose change is alone
    /// in its batch. Survives attempts.
    own_batch: HashMap<OpToken, u64>,
}

impl Waiting {
    /// Adds an operation, and makes it ready.
    pub(super) fn insert(&mut self, token: OpToken, pending: Pending) {
        self.pending.insert(token, pending);
        self.ready.push_back(token);
    }

    /// Removes the next ready operation for an attempt.
    pub(super) fn take_ready(&mut self) -> Option<(OpToken, Pending)> {
        while let Some(token) = self.ready.pop_front() {
            if let Some(pending) = self.pending.remove(&token) {
                return Some((token, pending));
            }
        }
        None
    }

    /// Puts an operation back whose attempt has to wait.
    pub(super) fn put_back(&mut self, token: OpToken, pending: Pending) {
        self.pending.insert(token, pending);
    }

    /// Removes an operation that has ended; `None` if it had ended before.
    pub(super) fn remove(&mut self, token: OpToken) -> Option<Pending> {
        self.clear_own_batch(token);
        self.pending.remove(&token)
    }

    /// Removes all operations.
    pub(super) fn remove_all(&mut self) -> impl Iterator<Item = OpToken> + use<> {
        self.own_batch.clear();
        std::mem::take(&mut self.pending).into_keys()
    }

    pub(super) fn contains(&self, token: OpToken) -> bool {
        self.pending.contains_key(&token)
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns the operations that were submitted at `limit` or before.
    pub(super) fn submitted_until(&self, limit: Duration) -> Vec<OpToken> {
        let late = self.pending.iter().filter(|(_, pending)| pending.since <= limit);
        late.map(|(token, _)| *token).collect()
    }

    /// Adds an operation to the waiters of an event.
    pub(super) fn wait(&mut self, event: Event, token: OpToken) {
        self.lists[event as usize].push(token);
    }

    /// Adds operations to the waiters of an event.
    pub(super) fn wait_all(&mut self, event: Event, tokens: Vec<OpToken>) {
        self.lists[event as usize].extend(tokens);
    }

    /// Returns whether an operation waits for an event.
    pub(super) fn waits_for(&self, event: Event, token: OpToken) -> bool {
        self.lists[event as usize].contains(&token)
    }

    /// Has an operation wait until batch `number` is applied.
    pub(super) fn wait_for_batch(&mut self, number: u64, token: OpToken) {
        self.for_batch.push((number, token));
    }

    /// Makes operations ready.
    pub(super) fn wake(&mut self, tokens: impl IntoIterator<Item = OpToken>) {
        self.ready.extend(tokens);
    }

    /// Makes the operations ready that waited for an event.
    pub(super) fn wake_for(&mut self, event: Event) {
        self.ready.extend(self.lists[event as usize].drain(..));
    }

    /// Makes the operations ready that waited for a batch up to `applied`.
    pub(super) fn wake_for_batches(&mut self, applied: u64) {
        let done = self.for_batch.extract_if(.., |(number, _)| *number <= applied);
        self.ready.extend(done.map(|(_, token)| token));
    }

    /// Removes the operations that wait for batches that will never be applied.
    pub(super) fn take_for_batches(&mut self) -> Vec<OpToken> {
        std::mem::take(&mut self.for_batch).into_iter().map(|(_, token)| token).collect()
    }

    pub(super) fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Hands a response to an operation, and makes it ready.
    pub(super) fn give(&mut self, token: OpToken, response: Response) {
        if let Some(pending) = self.pending.get_mut(&token) {
            pending.response = Some(response);
            self.ready.push_back(token);
        }
    }

    /// Returns the batch that completes an operation, if it was set.
    pub(super) fn own_batch(&self, token: OpToken) -> Option<u64> {
        self.own_batch.get(&token).copied()
    }

    pub(super) fn set_own_batch(&mut self, token: OpToken, number: u64) {
        self.own_batch.insert(token, number);
    }

    pub(super) fn clear_own_batch(&mut self, token: OpToken) {
        // Most operations end while no other one has a batch: this saves a hash.
        if !self.own_batch.is_empty() {
            self.own_batch.remove(&token);
        }
    }
}
