//! The processes of the lab: what each one runs.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::{self, ClientTask};
use super::server::{self, ServerTask};
use super::witness::{self, WitnessTask};
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab soak";

/// The role of a process.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProcessRole {
    Client(ClientTask),
    Server(ServerTask),
    Witness(WitnessTask),
}

/// Runs one process.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let role = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected task: {error}")))?;
    match role {
        ProcessRole::Client(task) => client::drive(&task, control).map(|report| json!(report)),
        ProcessRole::Server(task) => server::serve(&task, control),
        ProcessRole::Witness(task) => witness::run(&task, control).map(|()| json!(null)),
    }
}
