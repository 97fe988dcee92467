//! An HTTP exporter for Prometheus that serves the counters of other processes.

use std::net::SocketAddr;

use apus::introspection::{Error, Process, Query, processes};
use apus::prometheus::Exporter;
use apus::snapshot::Snapshot;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Serves the counters of one process, or of all processes found at each request, until SIGINT or
/// SIGTERM arrives.
///
/// # Errors
///
/// The address cannot be bound.
pub(super) fn listen(address: SocketAddr, pid: Option<u32>) -> Result<(), Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::of("catch signals", &error))?;
    let exporter = Exporter::with_source(address, true, move || snapshots(&selected(pid)))
        .map_err(|error| {
            Failure::Work(format!("listen on {address}: {error}\nPort 0 picks a free one."))
        })?;
    output::line(&format!("listening on http://{}/metrics", exporter.local_addr()))?;
    signals.forever().next();
    Ok(())
}

/// Returns the process with this id, or all processes.
fn selected(pid: Option<u32>) -> Vec<Process> {
    match pid {
        Some(pid) => vec![Process::new(pid)],
        None => processes().unwrap_or_default(),
    }
}

/// Returns the snapshots of these processes. Prometheus detects an ended process by its missing
/// values, and one that does not respond by the value 0 of `apus_up`.
pub(super) fn snapshots(processes: &[Process]) -> Vec<Snapshot> {
    let responses = processes.iter().zip(Query::SNAPSHOT.all(processes));
    let snapshot = |(process, response): (&Process, Result<Snapshot, Error>)| match response {
        Ok(snapshot) => Some(snapshot),
        Err(Error::Absent { .. } | Error::Ended { .. }) => None,
        Err(_) => Some(process.unresponsive_snapshot()),
    };
    responses.filter_map(snapshot).collect()
}
