//! Output of a client: effects that the caller carries out, and counters.

use std::collections::VecDeque;

use crate::tally::Tally;
use crate::wire::{CallbackResponse, Errno, Ino, LockOwner, RequestKind, frame};

use crate::client::interface::effect::{
    ClientEffect, Invalidation, NotifyToken, OpToken, ServerCallback,
};
use crate::client::interface::kind::OperationKind;
use crate::client::interface::operation::Reply;

/// Activity of a client since it started.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::client) struct Counters {
    pub(in crate::client) operations: u64,
    pub(in crate::client) operations_by_kind: Tally<{ OperationKind::ALL.len() }>,
    pub(in crate::client) cache_hits: u64,
    pub(in crate::client) calls: u64,
    pub(in crate::client) calls_by_kind: Tally<{ RequestKind::ALL.len() }>,
    pub(in crate::client) batches: u64,
    pub(in crate::client) batches_refused: u64,
    pub(in crate::client) locks_lost: u64,
    pub(in crate::client) recalls: u64,
    pub(in crate::client) read_ahead: u64,
}

/// Effects that were not taken yet, in order, and counters.
#[derive(Debug, Default)]
pub(in crate::client) struct Output {
    effects: VecDeque<ClientEffect>,
    last_notification: u64,
    pub(in crate::client) counters: Counters,
}

impl Output {
    pub(in crate::client) fn push(&mut self, effect: ClientEffect) {
        self.effects.push_back(effect);
    }

    /// Removes the oldest effect.
    pub(in crate::client) fn take(&mut self) -> Option<ClientEffect> {
        self.effects.pop_front()
    }

    /// Ends an operation with a result.
    pub(in crate::client) fn reply(&mut self, operation: OpToken, result: Result<Reply, Errno>) {
        self.push(ClientEffect::Reply { operation, result });
    }

    /// Responds to a callback of the server.
    pub(in crate::client) fn answer(
        &mut self,
        callback: ServerCallback,
        response: &CallbackResponse,
    ) {
        let message = frame::encode(response);
        self.push(ClientEffect::Answer { callback, message });
    }

    /// Requests that the kernel drop cached items.
    pub(in crate::client) fn invalidate(&mut self, items: Vec<Invalidation>) -> NotifyToken {
        self.last_notification += 1;
        let notification = NotifyToken(self.last_notification);
        self.push(ClientEffect::Invalidate { notification, items });
        notification
    }

    pub(in crate::client) fn warn(&mut self, text: String) {
        self.push(ClientEffect::Warn(text));
    }

    /// Counts a lock that an application still relies on and the server no longer grants, and
    /// warns.
    pub(in crate::client) fn report_lost_lock(&mut self, ino: Ino, owner: LockOwner) {
        self.counters.locks_lost += 1;
        let kind = if owner.is_flock { "flock" } else { "fcntl" };
        self.warn(format!("a lock ({kind}) on file {} is lost: it may be another client's", ino.0));
    }
}
