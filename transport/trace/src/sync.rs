//! Atomics: the processor's, or loom's in models.

#[cfg(not(apus_trace_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(apus_trace_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Returns `len` zeros. The system allocates the pages on the first write.
#[cfg(not(apus_trace_loom))]
pub(crate) fn zeroed(len: usize) -> Box<[AtomicU64]> {
    bytemuck::zeroed_slice_box(len)
}

#[cfg(apus_trace_loom)]
pub(crate) fn zeroed(len: usize) -> Box<[AtomicU64]> {
    (0..len).map(|_| AtomicU64::new(0)).collect()
}
