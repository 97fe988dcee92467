//! Processes: the running processes with endpoints that a command inspects.

use apus::introspection::{Error, Process, Query, processes};
use apus::snapshot::Snapshot;
use clap::Args;
use serde_json::{Value, json};

use apus_command_line::failure::Failure;

/// One process of this user that has an endpoint, or all of them.
#[derive(Debug, Args)]
pub(crate) struct Processes {
    /// Id of the process; not needed if only one process of this user has an endpoint
    #[arg(value_name = "PID", conflicts_with = "all", value_parser = parse_pid)]
    pub(crate) pid: Option<u32>,
    /// All processes of this user that have endpoints
    #[arg(long)]
    pub(crate) all: bool,
}

/// Parses the id of a process.
pub(crate) fn parse_pid(text: &str) -> Result<u32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| {
        "a process is named by its id, such as 4711; `apus metrics --all` shows them".to_owned()
    })
}

impl Processes {
    /// Returns the selected processes; `command` is the command to name in the advice.
    ///
    /// # Errors
    ///
    /// No process has an endpoint, or several have one and none is selected.
    pub(crate) fn select(&self, command: &str) -> Result<Vec<Process>, Failure> {
        if let Some(pid) = self.pid {
            return Ok(vec![Process::new(pid)]);
        }
        let found = processes()?;
        match found.len() {
            0 => Err(Failure::Work(none_found())),
            1 => Ok(found),
            _ if self.all => Ok(found),
            _ => Err(Failure::Work(several_found(&found, command))),
        }
    }
}

/// The responses of some processes to one request.
pub(crate) struct Responses<T> {
    /// The processes that have responded, with their responses.
    pub(crate) received: Vec<(Process, T)>,
    /// The processes without a response.
    pub(crate) silent: Vec<Silent>,
}

/// A process that runs and does not respond: it is stopped, for example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Silent {
    pub(crate) pid: u32,
    pub(crate) reason: String,
}

impl Silent {
    /// Returns the entry of this process for `--json`.
    pub(crate) fn json(&self) -> Value {
        json!({ "pid": self.pid, "reason": self.reason })
    }

    /// Succeeds if every process has responded.
    ///
    /// # Errors
    ///
    /// Names each process that has not.
    pub(crate) fn require_none(silent: &[Self]) -> Result<(), Failure> {
        if silent.is_empty() {
            return Ok(());
        }
        let reasons: Vec<_> = silent.iter().map(|silent| silent.reason.as_str()).collect();
        Err(Failure::Work(reasons.join("\n")))
    }
}

impl<T> Responses<T> {
    /// Sends a request to all `processes` at once. A silent process delays the others by a second
    /// at most. If there are several processes, those that end meanwhile are left out.
    ///
    /// # Errors
    ///
    /// No process responds.
    pub(crate) fn request(processes: &[Process], query: Query<T>) -> Result<Self, Failure> {
        if let [process] = processes {
            let received = vec![(process.clone(), query.of(process)?)];
            return Ok(Self { received, silent: Vec::new() });
        }
        let mut responses = Self { received: Vec::new(), silent: Vec::new() };
        for (process, response) in processes.iter().zip(query.all(processes)) {
            match response {
                Ok(response) => responses.received.push((process.clone(), response)),
                Err(Error::Absent { .. } | Error::Ended { .. }) => {}
                Err(error) => {
                    // The text may come from a process of another user.
                    let reason = error.to_string().replace(char::is_control, "?");
                    responses.silent.push(Silent { pid: process.pid(), reason });
                }
            }
        }
        if responses.received.is_empty() {
            Silent::require_none(&responses.silent)?;
        }
        Ok(responses)
    }
}

fn none_found() -> String {
    "no process of this user has an apus endpoint that can be inspected; `apus serve` starts one, and \
     APUS_RUNTIME_DIR and XDG_RUNTIME_DIR must be the same for both"
        .to_owned()
}

fn several_found(found: &[Process], command: &str) -> String {
    let line = |(process, response): (&Process, Result<Snapshot, Error>)| {
        let about = match response {
            Ok(snapshot) => label(&snapshot),
            Err(Error::Unresponsive { source, .. }) => format!("it does not respond: {source}"),
            // The process has ended meanwhile.
            Err(_) => return String::new(),
        };
        format!("\n  apus {command} {}    # {about}", process.pid())
    };
    let lines: String = found.iter().zip(Query::SNAPSHOT.all(found)).map(line).collect();
    format!("{} processes have apus endpoints; name one, or add --all:{lines}", found.len())
}

/// Returns the program and the addresses of a process.
pub(crate) fn label(snapshot: &Snapshot) -> String {
    /// Maximum number of addresses listed.
    const LISTED: usize = 3;
    let addresses: Vec<_> =
        snapshot.endpoints.iter().take(LISTED).map(|one| one.address.to_string()).collect();
    let more = match snapshot.endpoints.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    // Root may inspect processes of other users: control characters in their names must not reach
    // the terminal.
    let program = snapshot.program.replace(char::is_control, "?");
    format!("{program} at {}{more}", addresses.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::snapshot::EndpointSnapshot;

    #[test]
    fn a_process_is_labelled_by_its_program_and_addresses() {
        let endpoint = |port: u16| {
            EndpointSnapshot::new(([127, 0, 0, 1], port).into(), &apus::Metrics::default())
        };
        let endpoints = (1..=5).map(endpoint).collect();
        let program = "a\u{1b}[2Jb".to_owned();
        let text = label(&Snapshot { program, endpoints, ..Snapshot::default() });
        assert_eq!(text, "a?[2Jb at 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3 and 2 more");
    }
}
