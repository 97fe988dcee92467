//! The overload experiment: a server with more requests than it can serve.
//!
//! A server computes for a fixed time on each request, and a client sends requests at random
//! instants (Poisson), whether or not earlier requests are complete: first below the server's
//! capacity, then several times above it. Clients have limited patience: a reply that arrives too
//! late is useless, although it cost work. The useful replies are the *goodput*. TCP does the same
//! work for comparison, at the same load, with the same number of threads.
//!
//! ```text
//!   capacity   a few requests always outstanding   → 1x = completed by apus
//!   load       open loop at 0.25x … 4x, n runs     → goodput, latency, refused, dropped
//!   idle       no request for a second, then one      → idle processor time, first reply
//! ```

mod options;
mod phases;
mod report;
mod sides;

pub use options::OverloadOptions;
pub(crate) use sides::JOB;

use serde_json::Value;

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

impl Experiment for OverloadOptions {
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
pub fn run(options: &OverloadOptions, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}

/// Runs one side in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
