//! Checks and measures of mounted file systems.
//!
//! [`check`] asks several mounts of the same directory to keep what a local file system keeps: it
//! works on any paths, those of other file systems included. [`mod@bench`] measures the file
//! service of apus beside other ones.

#![forbid(unsafe_code)]

pub mod bench;
pub mod check;
