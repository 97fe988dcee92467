//! Simulator of the file service: clients and a server in one deterministic world, and checkers of
//! what was promised.
//!
//! [`check_seed`] draws a scenario, runs it and checks its history. The checkers know nothing of
//! leases, batches or sessions. They read a [`history`]: what applications have asked of their
//! mounts, what they were answered, and when.

#![forbid(unsafe_code)]

pub mod checker;
pub mod history;
mod scenario;
mod seed;
mod totals;
mod violation;
mod world;

pub use scenario::{Fault, Scenario};
pub use seed::{SeedFailure, check_scenario, check_seed};
pub use totals::Totals;
pub use violation::Violation;
