//! Output of a server: effects that the caller carries out, and counters.

use std::collections::VecDeque;

use crate::tally::Tally;
use crate::wire::frame::encode;
use crate::wire::{Errno, Failure, RequestKind, Response};
use bytes::Bytes;

use super::effect::{CallToken, ServerEffect};

/// Activity of a server since it started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: Tally<{ RequestKind::ALL.len() }>,
    pub(super) recalls: u64,
    pub(super) batches: u64,
}

/// Effects that were not taken yet, in order, and counters.
#[derive(Debug, Default)]
pub(super) struct Output {
    effects: VecDeque<ServerEffect>,
    pub(super) counters: Counters,
}

impl Output {
    pub(super) fn push(&mut self, effect: ServerEffect) {
        self.effects.push_back(effect);
    }

    /// Removes the oldest effect.
    pub(super) fn take(&mut self) -> Option<ServerEffect> {
        self.effects.pop_front()
    }

    pub(super) fn respond(&mut self, call: CallToken, response: &Response) {
        self.respond_with(call, encode(response), Vec::new());
    }

    pub(super) fn respond_with(&mut self, call: CallToken, header: Bytes, payload: Vec<Bytes>) {
        self.push(ServerEffect::Respond { call, header, payload });
    }

    pub(super) fn fail(&mut self, call: CallToken, failure: Failure) {
        self.respond(call, &Response::Failed(failure));
    }

    pub(super) fn fail_errno(&mut self, call: CallToken, errno: Errno) {
        self.fail(call, Failure::Errno(errno));
    }
}
