//! Status of a client.

use crate::wire::LeaseKind;
use serde::{Deserialize, Serialize};

use super::link::Link;
use super::link::session::SessionState;
use super::nodes::cache::Cache;
use super::recalls::table::Recalls;
use super::waiting::Waiting;

/// State of a client.
///
/// Fields that a text of another version lacks are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientStatus {
    /// Whether the server responds.
    pub is_live: bool,
    /// Nodes in the cache.
    pub nodes: u64,
    /// Shared leases.
    pub shared: u64,
    /// Exclusive leases.
    pub exclusive: u64,
    /// Bytes of files in the cache.
    pub cached_bytes: u64,
    /// Batches that are not at the server.
    pub waiting_batches: u64,
    /// Bytes of files that are not at the server.
    pub waiting_bytes: u64,
    /// Operations that have not ended.
    pub pending: u64,
    /// Calls without a response.
    pub outstanding: u64,
    /// Leases that the server has recalled, and that are not returned yet.
    pub recalls_pending: u64,
    /// Operations since the client started.
    pub operations: u64,
    /// Calls to the server since then.
    pub calls: u64,
    /// Batches that were sent since then, again ones included.
    pub batches: u64,
    /// Batches that the server refused since then.
    pub batches_refused: u64,
    /// Locks that the client could not take again after a restart of the server.
    pub locks_lost: u64,
    /// Recalls since then.
    pub recalls: u64,
    /// Calls since then for bytes that no operation waited for yet.
    pub read_ahead: u64,
}

/// Returns the state of a client.
pub(super) fn status(
    link: &Link,
    cache: &Cache,
    waiting: &Waiting,
    recalls: &Recalls,
) -> ClientStatus {
    let leases = |kind| cache.iter().filter(|node| node.lease == kind).count() as u64;
    let (batches, bytes) = link.log.waiting();
    let (session, counters) = (&link.session, &link.output.counters);
    ClientStatus {
        is_live: session.state == SessionState::Live && session.silent_since.is_none(),
        nodes: cache.len() as u64,
        shared: leases(LeaseKind::Shared),
        exclusive: leases(LeaseKind::Exclusive),
        cached_bytes: cache.iter().map(|node| node.contents.kept() as u64).sum(),
        waiting_batches: batches as u64,
        waiting_bytes: bytes as u64,
        pending: waiting.len() as u64,
        outstanding: link.calls.len() as u64,
        recalls_pending: recalls.len() as u64,
        operations: counters.operations,
        calls: counters.calls,
        batches: counters.batches,
        batches_refused: counters.batches_refused,
        locks_lost: counters.locks_lost,
        recalls: counters.recalls,
        read_ahead: counters.read_ahead,
    }
}
