//! Processes: the running processes with endpoints that a command inspects.

use apus::introspection::{Error, Process, processes};
use apus::snapshot::Snapshot;
use clap::Args;

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

    /// Sends a request to each selected process and returns the answers. If several are selected,
    /// processes that end meanwhile are left out.
    ///
    /// # Errors
    ///
    /// As for [`Processes::select`], and if a process does not answer.
    pub(crate) fn ask<T>(
        &self,
        command: &str,
        request: impl Fn(&Process) -> Result<T, Error>,
    ) -> Result<Vec<(Process, T)>, Failure> {
        ask(&self.select(command)?, request)
    }
}

/// Sends a request to each of `processes` and returns the answers. If there are several, processes
/// that end meanwhile are left out.
///
/// # Errors
///
/// A process does not answer.
pub(crate) fn ask<T>(
    processes: &[Process],
    request: impl Fn(&Process) -> Result<T, Error>,
) -> Result<Vec<(Process, T)>, Failure> {
    let several = processes.len() > 1;
    let mut answers = Vec::new();
    for process in processes {
        match request(process) {
            Ok(answer) => answers.push((process.clone(), answer)),
            Err(Error::Absent { .. }) if several => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(answers)
}

fn none_found() -> String {
    "no process of this user has an apus endpoint that can be inspected; `apus serve` starts one, and \
     APUS_RUNTIME_DIR and XDG_RUNTIME_DIR must be the same for both"
        .to_owned()
}

fn several_found(found: &[Process], command: &str) -> String {
    let line = |process: &Process| match process.snapshot() {
        Ok(snapshot) => format!("\n  apus {command} {}    # {}", snapshot.pid, label(&snapshot)),
        // The process has ended meanwhile.
        Err(_) => String::new(),
    };
    let lines: String = found.iter().map(line).collect();
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
