//! Which endpoints does this process have?

use super::service::Service;
use crate::engine::shard::Shard;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What all endpoints of the process share.
struct Present {
    shards: Vec<Weak<Shard>>,
    service: Option<Service>,
}

static PRESENT: Mutex<Present> = Mutex::new(Present { shards: Vec::new(), service: None });

fn present() -> MutexGuard<'static, Present> {
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An endpoint that can be looked at, until this is dropped. The first one of a process starts the service, and the last one
/// ends it.
#[derive(Debug)]
pub(crate) struct Presence {
    shard: Weak<Shard>,
}

impl Presence {
    /// Lets others look at an endpoint; `None` if the environment forbids it.
    pub(crate) fn enter(shard: &Arc<Shard>) -> Option<Self> {
        if std::env::var_os("APUS_LIVE").is_some_and(|value| value == "0") {
            return None;
        }
        let mut present = present();
        let shard = Arc::downgrade(shard);
        present.shards.push(shard.clone());
        if present.service.is_none() {
            // Without a folder, a thread or descriptors the endpoint works all the same.
            present.service = Service::start().ok();
        }
        Some(Self { shard })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let service = {
            let mut present = present();
            present.shards.retain(|shard| !Weak::ptr_eq(shard, &self.shard));
            present.shards.is_empty().then(|| present.service.take()).flatten()
        };
        // Without the lock: the service may be about to take it.
        drop(service);
    }
}

/// The endpoints that live, the oldest first.
pub(super) fn shards() -> Vec<Arc<Shard>> {
    present().shards.iter().filter_map(Weak::upgrade).collect()
}
