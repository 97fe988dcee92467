//! Calls of the server to its clients.

use std::net::SocketAddr;
use std::time::Duration;

use apus::{CallOptions, Completion, Endpoint};
use apus_fs_core::server::{CallbackToken, EXPORT_SHIFT};
use bytes::Bytes;

/// Time after which a callback counts as failed. The core decides how to proceed, and may call
/// again: a client that flushes a large log takes longer than a short limit would allow.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A callback of one export's server. Its cookie has the number of the export in the highest byte,
/// as sessions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Callee {
    pub(super) export: u8,
    pub(super) callback: CallbackToken,
}

/// Calls a client. Returns whether an outcome will follow.
pub(super) fn call(endpoint: &Endpoint, callee: Callee, peer: SocketAddr, message: Bytes) -> bool {
    let cookie = callee.callback.0 | u64::from(callee.export) << EXPORT_SHIFT;
    // To recall a lease twice is harmless.
    let options = CallOptions::new().no_wait(true).idempotent(true).timeout(TIMEOUT);
    endpoint.send_with(peer, message, cookie, options).is_ok()
}

/// Returns which callback has ended, and its response if it has one.
pub(super) fn outcome(completion: Completion) -> (Callee, Option<Bytes>) {
    let callback = CallbackToken(completion.cookie & ((1 << EXPORT_SHIFT) - 1));
    let callee = Callee { export: (completion.cookie >> EXPORT_SHIFT) as u8, callback };
    (callee, completion.result.ok())
}
