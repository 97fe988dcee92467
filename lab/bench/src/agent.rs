//! The jobs of benchmark agents.

use std::process::ExitCode;

use apus_testbed::Error;
use apus_testbed::process::{Control, Job, Task, agent_main, run_job};
use serde_json::Value;

use crate::{cluster, contest, demo, endpoints, local, loopback, overload};

/// One entry per kind of task.
pub const JOBS: &[Job] = &[
    Job { name: contest::JOB, run: contest::agent },
    Job { name: local::JOB, run: local::agent },
    Job { name: loopback::JOB, run: loopback::agent },
    Job { name: overload::JOB, run: overload::agent },
    Job { name: cluster::JOB, run: cluster::agent },
    Job { name: endpoints::JOB, run: endpoints::agent },
    Job { name: demo::JOB, run: demo::agent },
];

/// Runs as one side of a benchmark. A program that runs benchmarks calls only this function when
/// its first argument is [`AGENT`](apus_testbed::process::AGENT).
#[must_use]
pub fn main() -> ExitCode {
    agent_main(run)
}

/// Does the work of a task.
///
/// # Errors
///
/// As for the work.
pub fn run(task: &Task, control: &mut Control) -> Result<Value, Error> {
    run_job(JOBS, task, control)
}
