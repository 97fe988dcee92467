//! Registration of an observable endpoint. The first registration in a process starts the service,
//! the last one ends it.

use crate::introspection::registry::{self, Observable};
use crate::introspection::service::Service;
use apus_process::{Owner, PerProcess};
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError, Weak};

/// Taken before the lock of the registry, which the service's thread takes as well.
static SERVICE: PerProcess<Mutex<Option<Service>>> = PerProcess::new(Mutex::default);

/// The entry of an observable endpoint, removed on drop.
#[must_use = "dropped, the endpoint cannot be inspected"]
pub struct Registration {
    endpoint: Weak<dyn Observable>,
    owner: Owner,
}

impl Registration {
    /// Registers an endpoint. Returns `None` if the environment forbids it (`APUS_LIVE=0`).
    ///
    /// If the system refuses a folder, a thread or a descriptor, `failed` gets the error: the
    /// endpoint works, and the process cannot be inspected until a later registration succeeds.
    pub fn new(endpoint: Weak<dyn Observable>, failed: impl FnOnce(&io::Error)) -> Option<Self> {
        if std::env::var_os("APUS_LIVE").is_some_and(|value| value == "0") {
            return None;
        }
        let mut service = SERVICE.get().lock().unwrap_or_else(PoisonError::into_inner);
        registry::add(endpoint.clone());
        if service.is_none() {
            match Service::start() {
                Ok(started) => *service = Some(started),
                Err(error) => failed(&error),
            }
        }
        Some(Self { endpoint, owner: Owner::current() })
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            return;
        }
        let ended = {
            let mut service = SERVICE.get().lock().unwrap_or_else(PoisonError::into_inner);
            registry::remove(&self.endpoint).then(|| service.take()).flatten()
        };
        // Dropped without the lock: its thread is joined, which takes as long as the current
        // response.
        drop(ended);
    }
}
