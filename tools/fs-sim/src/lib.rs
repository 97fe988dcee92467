//! Simulator of the file service: clients and a server in one deterministic world, and checkers of what was promised.
//!
//! The checkers know nothing of leases, batches or sessions. They read a [`history`]: what applications have asked of their
//! mounts, what they were answered, and when.

#![forbid(unsafe_code)]

pub mod checker;
pub mod history;
mod violation;

pub use violation::Violation;
