//! Which atomics are used: the processor's, or those of the model checker?

#[cfg(not(apus_trace_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(apus_trace_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// So many zeros. The system gives the pages when they are first written to.
#[cfg(not(apus_trace_loom))]
pub(crate) fn zeroed(len: usize) -> Box<[AtomicU64]> {
    bytemuck::zeroed_slice_box(len)
}

#[cfg(apus_trace_loom)]
pub(crate) fn zeroed(len: usize) -> Box<[AtomicU64]> {
    (0..len).map(|_| AtomicU64::new(0)).collect()
}
