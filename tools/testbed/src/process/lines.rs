//! What do parent and agent say to each other?

use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line in bytes. Ours: results with histograms of many sizes take some hundred kilobytes;
/// this only ends what would fill the memory.
pub(crate) const LONGEST: u64 = 64 << 20;

/// What an agent is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The agent's name in messages, like `tcp server`.
    pub name: String,
    /// The core it runs on; `None` leaves it to the system.
    pub core: Option<usize>,
    /// The address of its own host at which the others of its crew reach it; `None` if nobody said.
    #[serde(default)]
    pub bind: Option<IpAddr>,
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
    /// Say what time it is.
    Clock {
        /// The parent's time, which the answer repeats.
        asked: u64,
    },
    /// What only the parent knows once all are ready. At most once.
    Begin {
        /// The particulars, as the job understands them.
        details: Value,
        /// The start, by the agent's clock.
        at: u64,
    },
    /// Come to an end and report.
    Stop,
}

/// Agent to parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// Others may come.
    Ready {
        /// Where the agent listens.
        address: SocketAddr,
    },
    /// What time it is.
    Clock {
        /// From the question.
        asked: u64,
        /// The agent's time.
        now: u64,
    },
    /// The result of the task.
    Done(Value),
    /// There will be no result.
    Failed(String),
    /// The agent ended; a relay says so, since nobody else sees it.
    Ended {
        /// Its exit status and what it wrote to standard error.
        how: String,
    },
}

/// Writes one line, at once.
pub(crate) fn write_line(to: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    to.write_all(&text)?;
    to.flush()
}

/// Reads one line. `None` at the end, also if that comes within a line.
///
/// # Errors
///
/// The line is longer than `longest` bytes or not what was expected; the message shows how it begins.
pub(crate) fn read_line<T: DeserializeOwned>(
    from: &mut dyn BufRead,
    longest: u64,
) -> io::Result<Option<T>> {
    let Some(text) = read_text(from, longest)? else { return Ok(None) };
    match serde_json::from_slice(&text) {
        Ok(line) => Ok(Some(line)),
        Err(error) => Err(strange(&text, &error.to_string())),
    }
}

/// Reads one line with its newline, whatever it says. `None` at the end, also if that comes within a
/// line.
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
    fn a_line_is_what_ends_with_a_newline() {
        assert_eq!(read(b"17\n18\n"), Ok(Some(17)));
        assert_eq!(read(b""), Ok(None));
        assert_eq!(read(b"17"), Ok(None), "whoever died in mid-line did not say 17");
    }

    #[test]
    fn strange_lines_are_shown() {
        assert!(read(b"Hello\n").unwrap_err().contains("`Hello`"));
        assert!(read(b"\xff\x1b[\n").unwrap_err().contains("\\u{1b}"), "nothing for terminals");
        assert!(read(b"123456789\n").unwrap_err().contains("longer than 8 bytes"));
    }
}
