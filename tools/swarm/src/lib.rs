//! Does the protocol keep its promises, whatever happens?
//!
//! Swarm testing. A seed draws parameters, a small fabric, a workload, and what goes wrong ([`Scenario`]); its
//! hosts run the protocol that ships; checkers, one for each promise, see what crosses the API and the wire.
//! Then everything heals, and every call must end, the next ones succeed, and nothing be left.
//!
//! ```text
//!   draw       what a seed decides                        scenario, call    the result
//!   world      hosts that are watched, and the phases     payload           which bytes messages have
//!   watch      shows everything that is seen to           checker           one file for each promise
//!   violation  what was promised, expected and seen       trace             what happened before
//!   seed       one seed, panics caught, repeated          swarm             many seeds on many threads
//! ```
//!
//! # Invariants
//!
//! - **S1** A seed gives the same verdict on any machine, with any number of threads.
//! - **S2** Checkers report only what is wrong for certain.

#![forbid(unsafe_code)]

mod call;
mod checker;
mod directory;
mod draw;
mod payload;
mod quiet;
mod scenario;
mod seed;
mod seen;
mod swarm;
mod trace;
mod violation;
mod watch;
mod world;

pub use call::{Answer, Call};
pub use scenario::{Peers, Scenario};
pub use seed::{Finding, Tally, Verdict, check, check_scenario};
pub use swarm::{Summary, Swarm};
pub use violation::{Kind, Violation};
