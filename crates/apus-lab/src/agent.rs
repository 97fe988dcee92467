//! What can an agent do?

use std::process::ExitCode;

use serde_json::Value;

use crate::error::Error;
use crate::process::{Control, Task, agent_main};
use crate::{
    bench, cluster, contention, demo, handoff, livelock, local, overload, small_writes, traces,
};

/// Is one side of an experiment. A program that runs experiments calls this, and does nothing else,
/// when its first argument is [`crate::process::AGENT`].
#[must_use]
pub fn main() -> ExitCode {
    agent_main(run)
}

/// Does the work of a task; the [`crate::process::Runner`] of this crate.
///
/// # Errors
///
/// What the work says.
pub fn run(task: &Task, control: &mut Control) -> Result<Value, Error> {
    match task.job.as_str() {
        bench::JOB => bench::agent(task, control),
        local::JOB => local::agent(task, control),
        demo::JOB => demo::agent(task, control),
        overload::JOB => overload::agent(task, control),
        cluster::JOB => cluster::agent(task, control),
        handoff::JOB => handoff::agent(task, control),
        livelock::JOB => livelock::agent(task, control),
        contention::JOB => contention::agent(task, control),
        small_writes::JOB => small_writes::agent(task, control),
        traces::record::JOB => traces::record::agent(task, control),
        other => Err(Error::Peer(format!("a task of a kind that nobody knows: {other}"))),
    }
}
