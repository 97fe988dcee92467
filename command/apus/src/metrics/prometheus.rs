//! An HTTP exporter for Prometheus that serves the counters of other processes.

use std::net::SocketAddr;

use apus::introspection::{Process, processes};
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
    let exporter =
        Exporter::with_source(address, true, move || snapshots(pid)).map_err(|error| {
            Failure::Work(format!("listen on {address}: {error}\nPort 0 picks a free one."))
        })?;
    output::line(&format!("listening on http://{}/metrics", exporter.local_addr()))?;
    signals.forever().next();
    Ok(())
}

/// Returns the snapshots of all running processes. Prometheus detects an ended process by its
/// missing values.
fn snapshots(pid: Option<u32>) -> Vec<Snapshot> {
    let all = match pid {
        Some(pid) => vec![Process::new(pid)],
        None => processes().unwrap_or_default(),
    };
    all.iter().filter_map(|process| process.snapshot().ok()).collect()
}
