//! The registration of an observable endpoint. The first one of a process starts the service, the
//! last one ends it.

use super::registry;
use super::service::Service;
use crate::engine::shard::Shard;
use crate::warning;
use std::io;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

/// Taken before the lock of the registry, which the service's thread takes as well.
static SERVICE: Mutex<Option<Service>> = Mutex::new(None);

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
        let mut service = SERVICE.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = Arc::downgrade(shard);
        registry::add(shard.clone());
        if service.is_none() {
            // If the system refuses a folder, a thread or a descriptor, the endpoint works without
            // the service.
            match Service::start() {
                Ok(started) => *service = Some(started),
                Err(error) => warn_once(&error),
            }
        }
        Some(Self { shard })
    }
}

/// Says that the process cannot be inspected, once.
fn warn_once(error: &io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        warning::print(format_args!(
            "this process cannot be inspected by `apus metrics` and `apus top`: {error} (APUS_RUNTIME_DIR names another \
             folder, APUS_LIVE=0 switches the inspection off)"
        ));
    });
}

impl Drop for Registration {
    fn drop(&mut self) {
        let ended = {
            let mut service = SERVICE.lock().unwrap_or_else(PoisonError::into_inner);
            registry::remove(&self.shard).then(|| service.take()).flatten()
        };
        // Dropped without the lock: its thread is joined, which takes as long as the current
        // response.
        drop(ended);
    }
}
