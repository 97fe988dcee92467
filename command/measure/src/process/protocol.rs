//! Messages between parent and agent: one JSON object per line.

use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a line in bytes. Chosen by us: results with many histograms have some hundred
/// kilobytes; the limit only protects memory.
pub const MAX_LINE: u64 = 64 << 20;

/// Hidden first argument that makes a program an agent.
pub const AGENT: &str = "__agent";

/// The work of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Name of the agent in messages, like `tcp server`.
    pub name: String,
    /// Core to run on; `None` leaves the choice to the system.
    pub core: Option<usize>,
    /// Address for the other members of the crew; `None` if unspecified.
    #[serde(default)]
    pub bind: Option<IpAddr>,
    /// Kind of work, resolved by the program's [`super::Runner`].
    pub job: String,
    /// Parameters defined by the job.
    pub details: Value,
}

impl Task {
    /// Adds the agent's host to its name, and a listening address unless the task has one.
    pub fn on_host(self, host: &str, bind: IpAddr) -> Self {
        let name = format!("{} on {host}", self.name);
        Self { name, bind: self.bind.or(Some(bind)), ..self }
    }
}

/// Message from parent to agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ParentMessage {
    /// The work to do. Always the first line.
    Task(Task),
    /// Requests the agent's clock.
    Clock {
        /// Parent's clock, which the answer repeats.
        asked: u64,
    },
    /// The order to prepare, with details that exist only when all agents are ready. Sent at most
    /// once, before the order to start.
    Prepare(Value),
    /// The order to start, with details that exist only when all agents are ready. Sent at most
    /// once.
    Begin {
        /// Parameters defined by the job.
        details: Value,
        /// Start time by the agent's clock.
        at: u64,
    },
    /// Requests the agent to stop and report.
    Stop,
}

/// Message from agent to parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentMessage {
    /// Others may connect.
    Ready {
        /// Listening address of the agent.
        address: SocketAddr,
    },
    /// The agent has finished preparing.
    Prepared,
    /// The agent's clock.
    Clock {
        /// Copied from the question.
        asked: u64,
        /// The agent's time.
        now: u64,
    },
    /// Result of the task.
    Done(Value),
    /// The task failed, with the reason.
    Failed(String),
    /// The agent process ended. Sent by a relay, the only observer of that.
    Ended {
        /// Exit status and standard error.
        how: String,
    },
}

/// Writes one line and flushes it.
pub fn write_line(to: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    to.write_all(&text)?;
    to.flush()
}

/// Reads one line. Returns `None` at the end of the input, even within a line.
///
/// # Errors
///
/// The line is longer than `longest` bytes or is not a `T`; the message shows its first bytes.
pub fn read_line<T: DeserializeOwned>(
    from: &mut dyn BufRead,
    longest: u64,
) -> io::Result<Option<T>> {
    let Some(text) = read_text(from, longest)? else { return Ok(None) };
    match serde_json::from_slice(&text) {
        Ok(line) => Ok(Some(line)),
        Err(error) => Err(strange(&text, &error.to_string())),
    }
}

/// Reads one line with its newline, without parsing it. Returns `None` at the end of the input,
/// even within a line.
///
/// # Errors
///
/// The line is longer than `longest` bytes.
pub(super) fn read_text(from: &mut dyn BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let length = from.take(longest).read_until(b'\n', &mut text)?;
    match text.last() {
        Some(b'\n') => Ok(Some(text)),
        _ if length as u64 == longest => {
            Err(strange(&text, &format!("longer than {longest} bytes")))
        }
        _ => Ok(None),
    }
}

fn strange(text: &[u8], problem: &str) -> io::Error {
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
    let dots = if text.len() > 60 { "..." } else { "" };
    let problem = format!("`{}{dots}` ({problem})", shown.trim_end().escape_debug());
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut text: &[u8]) -> Result<Option<u64>, String> {
        read_line(&mut text, 8).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_ends_with_a_newline() {
        assert_eq!(read(b"17\n18\n"), Ok(Some(17)));
        assert_eq!(read(b""), Ok(None));
        assert_eq!(read(b"17"), Ok(None), "a writer that died in mid-line did not write 17");
    }

    #[test]
    fn an_unexpected_line_is_shown() {
        assert!(read(b"Hello\n").unwrap_err().contains("`Hello`"));
        assert!(read(b"\xff\x1b[\n").unwrap_err().contains("\\u{1b}"), "escaped for terminals");
        assert!(read(b"123456789\n").unwrap_err().contains("longer than 8 bytes"));
    }
}
