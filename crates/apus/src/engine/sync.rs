//! Which primitives does the engine synchronise with?
//!
//! The standard library's, or loom's when the engine is model-checked (`--cfg apus_loom`).

#[cfg(not(apus_loom))]
pub(crate) use std::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(apus_loom))]
pub(crate) use std::thread::{Thread, current, park};

#[cfg(apus_loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(apus_loom)]
pub(crate) use loom::thread::{Thread, current, park};
