//! Calls of the server to its clients.

use std::net::SocketAddr;
use std::time::Duration;

use apus::{CallOptions, Completion, Endpoint};
use apus_fs_core::server::CallbackToken;
use bytes::Bytes;

/// Time after which a callback counts as failed. The core decides what follows, and may call again: a client that flushes a
/// large log takes longer than a short limit would allow.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Calls a client. Returns whether an outcome will come.
pub(super) fn call(
    endpoint: &Endpoint,
    callback: CallbackToken,
    peer: SocketAddr,
    message: Bytes,
) -> bool {
    // To recall a lease twice is harmless.
    let options = CallOptions::new().no_wait(true).idempotent(true).timeout(TIMEOUT);
    endpoint.send_with(peer, message, callback.0, options).is_ok()
}

/// Returns which callback has ended, and its response if it has one.
pub(super) fn outcome(completion: Completion) -> (CallbackToken, Option<Bytes>) {
    (CallbackToken(completion.cookie), completion.result.ok())
}
