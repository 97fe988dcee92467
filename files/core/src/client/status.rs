//! What a client says of itself.

use crate::wire::{LeaseKind, RequestKind};
use serde::{Deserialize, Serialize};

use super::session::SessionState;
use super::{Client, OperationKind};
use crate::tally::Tally;

/// What the client has done since it began.
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
    /// Calls to which the server has not responded.
    pub outstanding: u64,
    /// Leases that the server wants back, and does not have yet.
    pub recalls_pending: u64,
    /// Operations since the client began.
    pub operations: u64,
    /// Calls to the server since then.
    pub calls: u64,
    /// Batches that were sent since then, again ones included.
    pub batches: u64,
    /// Batches that the server refused since then.
    pub batches_refused: u64,
    /// Locks that the client could not take again after the server was restarted.
    pub locks_lost: u64,
    /// Recalls since then.
    pub recalls: u64,
    /// Calls since then for bytes that no operation waited for yet.
    pub read_ahead: u64,
}

impl Client {
    /// Returns the number of locks that the client could not take again after the server was restarted.
    pub const fn locks_lost(&self) -> u64 {
        self.counters.locks_lost
    }

    /// Returns the state of the client.
    pub fn status(&self) -> ClientStatus {
        let leases = |kind| self.nodes.values().filter(|node| node.lease == kind).count() as u64;
        let (batches, bytes) = self.log.waiting();
        ClientStatus {
            is_live: self.session.state == SessionState::Live
                && self.session.silent_since.is_none(),
            nodes: self.nodes.len() as u64,
            shared: leases(LeaseKind::Shared),
            exclusive: leases(LeaseKind::Exclusive),
            cached_bytes: self.nodes.values().map(|node| node.contents.kept() as u64).sum(),
            waiting_batches: batches as u64,
            waiting_bytes: bytes as u64,
            pending: self.pending.len() as u64,
            outstanding: self.calls.len() as u64,
            recalls_pending: self.recalls.len() as u64,
            operations: self.counters.operations,
            calls: self.counters.calls,
            batches: self.counters.batches,
            batches_refused: self.counters.batches_refused,
            locks_lost: self.counters.locks_lost,
            recalls: self.counters.recalls,
            read_ahead: self.counters.read_ahead,
        }
    }
}
