//! Synchronisation primitives of the lab's receive path: from std, or from loom in a model.

#[cfg(not(apus_loom))]
pub(super) use std::{
    sync::atomic::{AtomicBool, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
};

#[cfg(apus_loom)]
pub(super) use loom::{
    sync::atomic::{AtomicBool, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
};
