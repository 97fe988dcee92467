//! Swarm testing of the protocol: randomized simulations with a checker for each promise.
//!
//! A seed determines parameters, a small fabric, a workload and faults ([`Scenario`]). The
//! simulated hosts run the shipped protocol, and checkers observe the events at the API and on the
//! wire. After the faults, every call must end, further calls must succeed, and no state may be
//! left. `apus-lab sim check` is the command line of this crate.
//!
//! ```text
//!   generator   scenario of a seed                        scenario, call     the scenario
//!   attacker    programs of hostile hosts                 attack, address    abilities and addresses
//!                                                         meddling           actions of a host on the path
//!                                                         ends               shards and processes of a host
//!   simulation  observed hosts, phases of a run           payload            content of messages
//!   observer    passes observations to the checkers       checker            one file for each promise
//!   violation   promise, expectation and observation      event_log          events before a violation
//!   seed        one seed; panics, repetition              swarm              many seeds on many threads
//!   files       the file service's world of a seed
//! ```
//!
//! # Invariants
//!
//! - **SWARM-1** A seed gives the same result on any machine, with any number of threads.
//! - **SWARM-2** Checkers report only certain violations.

#![forbid(unsafe_code)]

mod address;
mod attack;
mod attacker;
mod call;
mod checker;
mod directory;
mod ends;
mod event_log;
mod files;
mod generator;
mod meddling;
mod observation;
mod observer;
mod panic_hook;
mod payload;
mod scenario;
mod seed;
mod simulation;
mod swarm;
mod violation;

pub use attack::{Attack, Position};
pub use call::{PlannedCall, ServerAction};
pub use ends::Division;
pub use meddling::Meddling;
pub use scenario::{Overload, PeerModel, Processors, Scenario, Sharing};
pub use seed::{RunTotals, SeedFailure, SeedResult, check, check_scenario};
pub use swarm::{Swarm, SwarmSummary};
pub use violation::{Violation, ViolationKind};
