//! Counters of a client.

use crate::wire::RequestKind;

use super::interface::kind::OperationKind;
use super::link::output::Counters;
use super::status::ClientStatus;

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

/// Returns the counters and gauges of a client.
pub(super) fn metrics(status: ClientStatus, counters: &Counters) -> ClientMetrics {
    ClientMetrics {
        status,
        operations: counters.operations_by_kind.of(OperationKind::ALL),
        cache_hits: counters.cache_hits,
        calls: counters.calls_by_kind.of(RequestKind::ALL),
    }
}
