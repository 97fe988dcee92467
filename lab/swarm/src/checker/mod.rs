//! Checkers: verify the promises of the protocol, one file for each.
//!
//! Checkers observe the events at the API and on the wire, and compare them with the specification.
//! They do not query the core. Where the core may have more information than a checker, the checker
//! decides in the core's favour (SWARM-2). Only [`memory`] reads the core's gauges, at the end of a
//! run. [`crate::observer`] calls the checkers.

pub(crate) mod amplification;
pub(crate) mod content;
pub(crate) mod contract;
pub(crate) mod cutoffs;
pub(crate) mod execution;
pub(crate) mod incoming;
pub(crate) mod liveness;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod permission;
mod ranges;
pub(crate) mod recovery;
pub(crate) mod sealing;
pub(crate) mod session;
#[cfg(test)]
mod tests;
pub(crate) mod undisturbed;
