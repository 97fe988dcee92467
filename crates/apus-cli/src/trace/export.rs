//! How do other tools get at traces?

use std::path::PathBuf;

use apus_trace::perfetto;
use clap::Args;

use super::traces::Traces;
use crate::destination::Destination;
use crate::failure::Failure;

/// Write traces for the Perfetto UI
///
/// A file that <https://ui.perfetto.dev> opens, which keeps it on your machine: threads with what they did, calls and
/// served RPCs with their stages, arrows along the messages, granted bytes as counters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace export --perfetto trace.pftrace client.tt server.tt")]
pub(super) struct Arguments {
    /// Write TrackEvents into this file
    #[arg(long, value_name = "FILE", required = true)]
    perfetto: PathBuf,
    #[command(flatten)]
    traces: Traces,
}

/// Writes the file.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let destination = Destination::open("--perfetto", &arguments.perfetto)?;
    destination.fill(&perfetto::export(&arguments.traces.merged()?))
}
