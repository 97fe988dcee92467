//! How are processes exported that know nothing of Prometheus?

use std::net::SocketAddr;

use apus::live::{Process, processes};
use apus::prometheus::Exporter;
use apus::snapshot::Snapshot;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::output;

/// Serves the counters of one process, or of all that are there at each request, until a signal comes.
pub(super) fn listen(address: SocketAddr, pid: Option<u32>) -> Result<(), Failure> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| Failure::of("catch signals", &error))?;
    let exporter = Exporter::of(address, true, move || taken(pid)).map_err(|error| {
        Failure::Work(format!("listen at {address}: {error}\nPort 0 takes any free one."))
    })?;
    output::line(&format!("listening on http://{}/metrics", exporter.local_addr()))?;
    signals.forever().next();
    Ok(())
}

/// What is there at the moment: whoever scrapes sees by the absence of values who has gone.
fn taken(pid: Option<u32>) -> Vec<Snapshot> {
    let all = match pid {
        Some(pid) => vec![Process::new(pid)],
        None => processes().unwrap_or_default(),
    };
    all.iter().filter_map(|process| process.snapshot().ok()).collect()
}
