//! What do parent and agent say to each other?

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an agent is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The agent's name in messages, like `tcp server`.
    pub name: String,
    /// The core it runs on; `None` leaves it to the system.
    pub core: Option<usize>,
    /// What kind of work; the program's [`super::Runner`] knows them.
    pub job: String,
    /// The particulars, as the job understands them.
    pub details: Value,
}

/// Parent to agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Begin. Always the first line.
    Task(Task),
    /// Come to an end and report.
    Stop,
}

/// Agent to parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// Clients may come.
    Ready {
        /// Where the server listens.
        address: SocketAddr,
    },
    /// The result of the task.
    Done(Value),
    /// There will be no result.
    Failed(String),
}

/// Writes one line, at once.
pub(super) fn write_line(to: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    to.write_all(&text)?;
    to.flush()
}

/// Reads one line. `None` at the end.
pub(super) fn read_line<T: DeserializeOwned>(from: &mut dyn BufRead) -> io::Result<Option<T>> {
    let mut text = String::new();
    if from.read_line(&mut text)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&text)?))
}
