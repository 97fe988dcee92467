//! What a client counts.

use crate::wire::RequestKind;

use super::status::ClientStatus;
use super::{Client, OperationKind};

/// Counters and gauges of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMetrics {
    /// Its state, with totals.
    pub status: ClientStatus,
    /// Operations by kind.
    pub operations: Vec<(OperationKind, u64)>,
    /// Operations that ended without waiting: for the server, the kernel, or another operation.
    pub cache_hits: u64,
    /// Calls to the server by kind, repeated ones included.
    pub calls: Vec<(RequestKind, u64)>,
}

impl Client {
    /// Returns counters and gauges.
    pub fn metrics(&self) -> ClientMetrics {
        ClientMetrics {
            status: self.status(),
            operations: self.counters.operations_by_kind.of(OperationKind::ALL),
            cache_hits: self.counters.cache_hits,
            calls: self.counters.calls_by_kind.of(RequestKind::ALL),
        }
    }
}
