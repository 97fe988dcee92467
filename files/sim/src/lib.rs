//! Simulator of the file service: clients and a server in one deterministic world, and checkers of
//! its promises.
//!
//! [`check_seed`] draws a scenario, runs it and checks its history. The checkers do not depend on
//! leases, batches or sessions. They read a [`history`]: the requests of applications to their
//! mounts, the answers, and the times of both.

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
