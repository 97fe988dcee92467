//! Which primitives does the lab's receive path synchronise with? The system's, or loom's in a model.

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
