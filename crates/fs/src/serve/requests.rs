//! Requests that wait for their responses, by the names that the core knows.

use std::collections::HashMap;

use apus::{Payload, Request};
use apus_fs_core::server::CallToken;
use bytes::Bytes;

/// Requests that wait for their responses.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: HashMap<CallToken, Request>,
    last: u64,
}

impl Requests {
    /// Keeps a request and returns its name.
    pub(super) fn add(&mut self, request: Request) -> CallToken {
        self.last += 1;
        let call = CallToken(self.last);
        self.waiting.insert(call, request);
        call
    }

    /// Responds to a request.
    pub(super) fn respond(&mut self, call: CallToken, header: Bytes, payload: Vec<Bytes>) {
        let Some(request) = self.waiting.remove(&call) else { return };
        let message = Payload::from_iter(std::iter::once(header).chain(payload));
        // A client that no longer waits asks again, if it still wants to know.
        let _ = request.reply(message);
    }
}
