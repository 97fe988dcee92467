//! Which processes are meant?

use apus::live::{Process, processes};

use crate::failure::Failure;

/// The process with this number, all, or the only one there is; `command` is what asks.
///
/// # Errors
///
/// There is none, or there are several and nobody said which one.
pub(crate) fn select(pid: Option<u32>, all: bool, command: &str) -> Result<Vec<Process>, Failure> {
    if let Some(pid) = pid {
        return Ok(vec![Process::new(pid)]);
    }
    let found = processes()?;
    match found.len() {
        0 => Err(Failure::Work(nobody())),
        1 => Ok(found),
        _ if all => Ok(found),
        _ => Err(Failure::Work(which(&found, command))),
    }
}

/// Nobody can be looked at.
fn nobody() -> String {
    "no process of this user has an apus endpoint that can be looked at; `apus serve` starts one, and APUS_RUNTIME_DIR \
     and XDG_RUNTIME_DIR must be the same for both"
        .to_owned()
}

/// There are several.
fn which(found: &[Process], command: &str) -> String {
    let line = |process: &Process| match process.snapshot() {
        Ok(snapshot) => format!("\n  apus {command} {}    # {}", snapshot.pid, about(&snapshot)),
        // It has ended meanwhile.
        Err(_) => String::new(),
    };
    let lines: String = found.iter().map(line).collect();
    format!("{} processes have apus endpoints; name one, or say --all:{lines}", found.len())
}

/// Program and addresses.
pub(crate) fn about(snapshot: &apus::snapshot::Snapshot) -> String {
    /// Addresses that are named.
    const NAMED: usize = 3;
    let addresses: Vec<_> =
        snapshot.endpoints.iter().take(NAMED).map(|one| one.address.to_string()).collect();
    let more = match snapshot.endpoints.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    // Root may look at processes of others: what they call themselves shall not speak to the terminal.
    let program = snapshot.program.replace(char::is_control, "?");
    format!("{program} at {}{more}", addresses.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::snapshot::{Endpoint, Snapshot};

    #[test]
    fn a_process_is_named_by_its_program_and_addresses() {
        let endpoint =
            |port: u16| Endpoint::new(([127, 0, 0, 1], port).into(), &apus::Metrics::default());
        let endpoints = (1..=5).map(endpoint).collect();
        let program = "a\u{1b}[2Jb".to_owned();
        let named = about(&Snapshot { program, endpoints, ..Snapshot::default() });
        assert_eq!(named, "a?[2Jb at 127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3 and 2 more");
    }
}
