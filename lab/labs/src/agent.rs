//! Agents: the processes that labs start.

use apus_testbed::Error;
use apus_testbed::process::{Control, Job, Task, run_job};
use serde_json::Value;

use crate::{contention, handoff, hostile, livelock, small_writes, soak};

/// The kinds of tasks; one per lab.
pub const JOBS: &[Job] = &[
    Job { name: handoff::JOB, run: |task, control| handoff::agent(task, control) },
    Job { name: livelock::JOB, run: livelock::agent },
    Job { name: contention::JOB, run: contention::agent },
    Job { name: small_writes::JOB, run: small_writes::agent },
    Job { name: hostile::JOB, run: hostile::agent },
    Job { name: soak::JOB, run: soak::agent },
];

/// Runs a task.
///
/// # Errors
///
/// The errors of the task.
pub fn run(task: &Task, control: &mut Control) -> Result<Value, Error> {
    run_job(JOBS, task, control)
}
