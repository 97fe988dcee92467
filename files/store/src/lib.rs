//! Stores of the file service, in which a server keeps its files.
//!
//! Each store implements [`apus_fs_core::Store`], whose documentation has the invariants.

#![forbid(unsafe_code)]

mod directory;
pub mod memory;
#[cfg(test)]
#[path = "../../../fuzz/mutate.rs"]
mod mutate;
#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[doc(hidden)]
pub use directory::{Crashed, FailPoint};
pub use directory::{DirectoryOptions, DirectoryStore, OpenError};
