//! The local experiment: messages between processes of one host.
//!
//! An endpoint through shared memory beside what users have: unix sockets, TCP on loopback, and the same endpoint
//! over UDP. Below it is a bare pair of `apus-local`, which shows what the endpoint adds.
//!
//! ```text
//!   sizes     one client, one server: one request at a time → latency; many outstanding → rate, or throughput of
//!             large messages
//!   workers   1, 2, 4 … N at a time, each with a connection of its own: in one task (as unix1 of
//!             will-it-scale), and as a ping-pong between two tasks
//!   clients   1, 2, 4 … N clients of one server: rate, latency, and fairness
//! ```
//!
//! Every side is a process of its own, on a core of its own as long as there are enough. All contenders wait in the
//! same way. Inside one run they take turns, each with fresh processes, and from run to run another one begins.
//!
//! # Small and large
//!
//! A message of [`Options::LARGE`] bytes is large: [`Options::LARGE_OUTSTANDING`] of them are outstanding, and
//! what counts is their bytes, so they get short replies, as in `bench throughput`. Smaller ones are echoed.

mod entrant;
mod one_task;
mod options;
mod phases;
mod report;
mod series;
mod sides;
mod tables;

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
/// An option does not fit, or a contender failed.
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}

/// Does one side's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
