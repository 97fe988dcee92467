//! The processes of the lab: what each one runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::router::RouterTask;
use super::{application, filter, generator, router};
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "livelock";

/// The role of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProcessRole {
    Router(RouterTask),
    Filter(filter::Door),
    Generator { seed: u64 },
    Compute,
    Monitor,
}

/// Runs one process.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let role = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected task: {error}")))?;
    match role {
        ProcessRole::Router(task) => router::agent(&task, control),
        ProcessRole::Filter(door) => filter::agent(&door, control),
        ProcessRole::Generator { seed } => generator::agent(seed, control),
        ProcessRole::Compute => application::compute(control),
        ProcessRole::Monitor => application::monitor(control),
    }
}
