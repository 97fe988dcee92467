//! The local experiment: messages between processes of one host.
//!
//! An endpoint through shared memory, compared with the usual alternatives: unix sockets, TCP on
//! loopback, and the same endpoint over UDP. A bare pair of `apus-local`, the layer below, shows
//! the cost of the endpoint.
//!
//! ```text
//!   sizes     one client, one server: one request at a time → latency;
//!             many outstanding → rate, or throughput of large messages
//!   workers   1, 2, 4 … N at a time, each with a separate connection: in one task (like unix1 of
//!             will-it-scale), and as a ping-pong between two tasks
//!   clients   1, 2, 4 … N clients of one server: rate, latency, and fairness
//! ```
//!
//! Every side is a separate process, on a separate core while cores are available. All contenders
//! use the same poll mode. Within one run they are measured one after the other, each with fresh
//! processes; the first contender changes from run to run.
//!
//! # Small and large
//!
//! A message of [`LocalOptions::LARGE`] bytes is large: [`LocalOptions::LARGE_OUTSTANDING`] of them are
//! outstanding, and their bytes count, so they get short replies, as in `bench throughput`. Smaller
//! messages are echoed.

mod entrant;
mod one_task;
mod options;
mod phases;
mod report;
mod series;
mod sides;
mod tables;

pub use options::LocalOptions;
pub(crate) use sides::JOB;

use serde_json::Value;

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

impl Experiment for LocalOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        run(self, &Spawner::this_program()?)
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// An option is invalid, or a contender failed.
pub fn run(options: &LocalOptions, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}

/// Runs one side in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
