//! Synchronisation primitives: the system's, or loom's in models (`--cfg apus_local_loom`).

#[cfg(not(apus_local_loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Mutex, MutexGuard},
};

#[cfg(apus_local_loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Mutex, MutexGuard},
};
