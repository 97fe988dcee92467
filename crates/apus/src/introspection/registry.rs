//! The registry of this process's observable endpoints. The first one starts the service, the last one ends it.

use super::service::Service;
use crate::engine::shard::Shard;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The endpoints of the process and their service.
struct Registry {
    shards: Vec<Weak<Shard>>,
    service: Option<Service>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { shards: Vec::new(), service: None });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of an observable endpoint, removed on drop.
#[derive(Debug)]
pub(crate) struct Registration {
    shard: Weak<Shard>,
}

impl Registration {
    /// Registers an endpoint. Returns `None` if the environment forbids it (`APUS_LIVE=0`).
    pub(crate) fn new(shard: &Arc<Shard>) -> Option<Self> {
        if std::env::var_os("APUS_LIVE").is_some_and(|value| value == "0") {
            return None;
        }
        let mut registry = registry();
        let shard = Arc::downgrade(shard);
        registry.shards.push(shard.clone());
        if registry.service.is_none() {
            // If the system refuses a folder, a thread or a descriptor, the endpoint works without the service.
            registry.service = Service::start().ok();
        }
        Some(Self { shard })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let service = {
            let mut registry = registry();
            registry.shards.retain(|shard| !Weak::ptr_eq(shard, &self.shard));
            registry.shards.is_empty().then(|| registry.service.take()).flatten()
        };
        // Dropped without the lock: its thread may wait for the lock, and is joined.
        drop(service);
    }
}

/// Returns the registered endpoints, the oldest first.
pub(super) fn shards() -> Vec<Arc<Shard>> {
    registry().shards.iter().filter_map(Weak::upgrade).collect()
}
