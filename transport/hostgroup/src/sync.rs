//! Atomics, and the page of a host: the processor's atomics with the page of `apus-local`, or
//! loom's in models (`--cfg apus_hostgroup_loom`).

#[cfg(not(apus_hostgroup_loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(all(feature = "host", not(apus_hostgroup_loom)))]
pub(crate) use apus_local::SharedPage as Page;

#[cfg(apus_hostgroup_loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A page of words that the threads of a model share.
#[cfg(all(test, apus_hostgroup_loom))]
#[derive(Debug)]
pub(crate) struct Page(Box<[AtomicU64]>);

#[cfg(all(test, apus_hostgroup_loom))]
impl Page {
    /// Returns `len` bytes, all 0.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self((0..len / 8).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns the eight bytes at `offset`.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        &self.0[offset / 8]
    }
}
