//! Which processes are meant?

use apus::live::{Process, processes};

use crate::failure::Failure;

/// The process with this number, all, or the only one there is.
pub(crate) fn select(pid: Option<u32>, all: bool) -> Result<Vec<Process>, Failure> {
    if let Some(pid) = pid {
        return Ok(vec![Process::new(pid)]);
    }
    let found = processes()?;
    match found.len() {
        0 => Err(Failure::Work(nobody())),
        1 => Ok(found),
        _ if all => Ok(found),
        _ => Err(Failure::Work(which(&found))),
    }
}

/// Nobody can be looked at.
fn nobody() -> String {
    "no process of this user has an apus endpoint that can be looked at; `apus serve` starts one, and APUS_RUNTIME_DIR \
     and XDG_RUNTIME_DIR must be the same for both"
        .to_owned()
}

/// There are several.
fn which(found: &[Process]) -> String {
    let line = |process: &Process| match process.snapshot() {
        Ok(snapshot) => format!("\n  apus metrics {}    # {}", snapshot.pid, about(&snapshot)),
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
    format!("{} at {}{more}", snapshot.program, addresses.join(", "))
}
