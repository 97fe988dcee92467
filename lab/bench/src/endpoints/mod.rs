//! The endpoints experiment: the cost of an endpoint in a process with many of them.
//!
//! One process opens client endpoints one after another, calls one server with each of them over
//! UDP, leaves all of them idle for a while, and makes another call with each.
//!
//! ```text
//!   create   each endpoint, timed                          → memory of a new endpoint
//!   first    one call with each                            → memory at rest, threads, server memory of a peer
//!   pause    no calls                             → processor time of endpoints at rest
//!   later    one call with each, after the idle period
//! ```
//!
//! One uncounted endpoint is opened and makes a call first: one-time costs of a process are not
//! costs of an endpoint.

mod callers;
mod options;
mod phases;
mod sides;
mod threads;

pub use options::EndpointsOptions;
pub(crate) use sides::JOB;

use serde_json::Value;

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

impl Experiment for EndpointsOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        run(self, &Spawner::this_program()?)
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// An option is out of range, or a side failed.
pub fn run(options: &EndpointsOptions, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}

/// Runs one side in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
