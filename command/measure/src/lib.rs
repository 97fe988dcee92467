//! Measurements on this machine, shared by `apus tune`, `apus trace record` and the laboratory.
//!
//! ```text
//!   exchange           requests and replies between two endpoints, each in its own process
//!   plan, meter        parameters of a run; warm-up and figures of one side
//!   ping_pong          the exchange loop with one outstanding request
//!   process            agents: each side of an experiment in its own process
//!   repeat             repeats disturbed phases, and retains undisturbed results
//!   machine, clock     cores, background load, time
//!   program            system programs, found in PATH
//!   error              reasons for a failed experiment
//! ```
//!
//! A measuring program starts itself again for each side. Its `main` must call
//! [`process::agent_main`] if the first argument is [`process::AGENT`].
//!
//! The networks of several hosts and the launchers of `apus-testbed` build on this package.

#![forbid(unsafe_code)]

pub mod clock;
pub mod error;
pub mod exchange;
pub mod machine;
pub mod meter;
pub mod ping_pong;
pub mod plan;
pub mod process;
pub mod program;
pub mod repeat;

pub use error::Error;
