//! Output of a client: effects that the caller carries out, and counters.

use std::collections::VecDeque;

use crate::tally::Tally;
use crate::wire::{CallbackResponse, Errno, Ino, LockOwner, RequestKind, frame};

use super::effect::{ClientEffect, Invalidation, NotifyToken, OpToken, ServerCallback};
use super::kind::OperationKind;
use super::operation::Reply;

/// Activity of a client since it started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) operations: u64,
    pub(super) operations_by_kind: Tally<{ OperationKind::ALL.len() }>,
    pub(super) cache_hits: u64,
    pub(super) calls: u64,
    pub(super) calls_by_kind: Tally<{ RequestKind::ALL.len() }>,
    pub(super) batches: u64,
    pub(super) batches_refused: u64,
    pub(super) locks_lost: u64,
    pub(super) recalls: u64,
    pub(super) read_ahead: u64,
}

/// Effects that were not taken yet, in order, and counters.
#[derive(Debug, Default)]
pub(super) struct Output {
    effects: VecDeque<ClientEffect>,
    last_notification: u64,
    pub(super) counters: Counters,
}

impl Output {
    pub(super) fn push(&mut self, effect: ClientEffect) {
        self.effects.push_back(effect);
    }

    /// Removes the oldest effect.
    pub(super) fn take(&mut self) -> Option<ClientEffect> {
        self.effects.pop_front()
    }

    /// Ends an operation with a result.
    pub(super) fn reply(&mut self, operation: OpToken, result: Result<Reply, Errno>) {
        self.push(ClientEffect::Reply { operation, result });
    }

    /// Responds to a callback of the server.
    pub(super) fn answer(&mut self, callback: ServerCallback, response: &CallbackResponse) {
        let message = frame::encode(response);
        self.push(ClientEffect::Answer { callback, message });
    }

    /// Requests that the kernel drop cached items.
    pub(super) fn invalidate(&mut self, items: Vec<Invalidation>) -> NotifyToken {
        self.last_notification += 1;
        let notification = NotifyToken(self.last_notification);
        self.push(ClientEffect::Invalidate { notification, items });
        notification
    }

    pub(super) fn warn(&mut self, text: String) {
        self.push(ClientEffect::Warn(text));
    }

    /// Counts a lock that an application still relies on and the server no longer grants, and
    /// warns.
    pub(super) fn report_lost_lock(&mut self, ino: Ino, owner: LockOwner) {
        self.counters.locks_lost += 1;
        let kind = if owner.is_flock { "flock" } else { "fcntl" };
        self.warn(format!("a lock ({kind}) on file {} is lost: it may be another client's", ino.0));
    }
}
