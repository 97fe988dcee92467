//! The endpoints experiment: what an endpoint costs a process that has many of them.
//!
//! One process opens client endpoints one after another, calls one server with each of them over UDP, leaves all of
//! them alone for a while, and calls once more with each.
//!
//! ```text
//!   create   each endpoint, timed                          → memory of a new endpoint
//!   first    one call with each                            → memory at rest, threads, memory of a peer at the server
//!   pause    nothing is called                             → processor time of endpoints at rest
//!   later    one call with each, which was idle meanwhile
//! ```
//!
//! One endpoint that does not count is opened and has called before: what a process has once is no cost of an endpoint.

mod callers;
mod options;
mod phases;
mod sides;
mod threads;

pub use options::Options;
pub(crate) use sides::JOB;

use serde_json::Value;

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

impl Experiment for Options {
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
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}

/// Does one side's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
