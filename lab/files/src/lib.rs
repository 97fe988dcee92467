//! Checks and benchmarks of mounted file systems.
//!
//! [`check`] verifies that several mounts of one directory keep the promises of a local file
//! system; it works on any paths, including other file systems. [`mod@bench`] compares the file
//! service of apus with others.

#![forbid(unsafe_code)]

pub mod bench;
pub mod check;
