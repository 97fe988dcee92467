//! The overload experiment: a server that is offered more than it can do.
//!
//! A server that computes for a fixed time on each request, and a client that sends requests at random instants
//! (Poisson), whether or not earlier ones are done: first less than the server can do, then several times as
//! many. A client has patience: a reply that arrives too late is useless, although it cost work. The useful replies are
//! the *goodput*. TCP does the same work beside it, at the same load, with as many threads.
//!
//! ```text
//!   capacity   a few requests always outstanding   → 1x = what apus completes
//!   load       open loop at 0.25x … 4x, n runs     → goodput, latency of what was served, refused, dropped
//!   idle       nothing for a second, then one      → processor time of an idle server, its first reply
//! ```

mod options;
mod phases;
mod report;
mod sides;

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
/// An option is out of range, or a contender failed.
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}

/// Does one side's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
