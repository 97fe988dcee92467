//! Transports that another program carries.

use std::path::PathBuf;

use serde_json::Value;

use super::node;
use crate::contenders::transport::Transport;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// A transport with nodes that are agents of another program. It takes part if a
/// [`Mix`](super::Mix) names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalTransport {
    /// Unique name in results.
    pub name: String,
    /// Program that calls [`external_agent`] if its first argument is
    /// [`AGENT`](apus_testbed::process::AGENT).
    pub program: PathBuf,
    /// Its settings in words, shown if no node has reported them.
    pub settings: String,
}

/// Runs one node in an agent of another program, over a transport of that program.
///
/// # Errors
///
/// As for the transport; or the task is not a node's.
pub fn external_agent(
    transport: &dyn Transport,
    task: &Task,
    control: &mut Control,
) -> Result<Value, Error> {
    node::agent(task, control, Some(transport))
}
