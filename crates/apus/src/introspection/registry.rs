//! The registry of this process's observable endpoints.

use crate::engine::shard::Shard;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

static SHARDS: Mutex<Vec<Weak<Shard>>> = Mutex::new(Vec::new());

fn registered() -> MutexGuard<'static, Vec<Weak<Shard>>> {
    SHARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers an endpoint.
pub(super) fn add(shard: Weak<Shard>) {
    registered().push(shard);
}

/// Removes an endpoint. Returns whether it was the last one.
pub(super) fn remove(shard: &Weak<Shard>) -> bool {
    let mut shards = registered();
    shards.retain(|other| !Weak::ptr_eq(other, shard));
    shards.is_empty()
}

/// Returns the registered endpoints, the oldest first.
pub(super) fn shards() -> Vec<Arc<Shard>> {
    registered().iter().filter_map(Weak::upgrade).collect()
}
