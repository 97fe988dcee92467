//! The registry of this process's observable endpoints.

use crate::introspection::rpc_row::RpcRow;
use crate::snapshot::EndpointSnapshot;
use apus_process::PerProcess;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An endpoint that other processes may inspect. The service's thread calls these methods, for one
/// request at a time.
pub trait Observable: Send + Sync {
    /// Returns the endpoint's counters, for each of its shards.
    fn counters(&self) -> Vec<EndpointSnapshot>;

    /// Returns the endpoint's live RPCs, in any order.
    fn live_rpcs(&self) -> Vec<RpcRow>;

    /// Returns the peers with messages that are arriving, at most the first `most` for each of its
    /// shards, with the shard's address.
    fn senders(&self, most: usize) -> Vec<(SocketAddr, apus_proto::Senders)>;
}

static OBSERVABLES: PerProcess<Mutex<Vec<Weak<dyn Observable>>>> = PerProcess::new(Mutex::default);

fn registered() -> MutexGuard<'static, Vec<Weak<dyn Observable>>> {
    OBSERVABLES.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers an endpoint.
pub(crate) fn add(endpoint: Weak<dyn Observable>) {
    registered().push(endpoint);
}

/// Removes an endpoint. Returns whether it was the last one.
pub(crate) fn remove(endpoint: &Weak<dyn Observable>) -> bool {
    let mut endpoints = registered();
    endpoints.retain(|other| !Weak::ptr_eq(other, endpoint));
    endpoints.is_empty()
}

/// Returns the registered endpoints, the oldest first.
pub(crate) fn observables() -> Vec<Arc<dyn Observable>> {
    registered().iter().filter_map(Weak::upgrade).collect()
}
