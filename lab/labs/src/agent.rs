//! The work that agents of the labs do.

use apus_testbed::Error;
use apus_testbed::process::{Control, Job, Task, run_job};
use serde_json::Value;

use crate::{contention, handoff, hostile, livelock, small_writes, soak};

/// One entry per kind of task.
pub const JOBS: &[Job] = &[
    Job { name: handoff::JOB, run: |task, control| handoff::agent(task, control) },
    Job { name: livelock::JOB, run: livelock::agent },
    Job { name: contention::JOB, run: contention::agent },
    Job { name: small_writes::JOB, run: small_writes::agent },
    Job { name: hostile::JOB, run: hostile::agent },
    Job { name: soak::JOB, run: soak::agent },
];

/// Does the work of a task.
///
/// # Errors
///
/// As for the work.
pub fn run(task: &Task, control: &mut Control) -> Result<Value, Error> {
    run_job(JOBS, task, control)
}
