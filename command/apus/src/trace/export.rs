//! `apus trace export`: traces in the formats of other tools.

use std::path::PathBuf;

use apus_traces::perfetto;
use clap::Args;

use super::trace_files::TraceFiles;
use apus_command_line::destination::Destination;
use apus_command_line::failure::Failure;

/// Export traces to the Perfetto UI
///
/// Writes a file for <https://ui.perfetto.dev>, which opens it without uploading it. It shows
/// threads with their events, calls and served RPCs with their stages, arrows along the messages,
/// and granted bytes as counters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace export --perfetto trace.pftrace client.tt server.tt")]
pub(super) struct ExportArguments {
    /// Write TrackEvents to this file
    #[arg(long, value_name = "FILE", required = true)]
    perfetto: PathBuf,
    #[command(flatten)]
    traces: TraceFiles,
}

/// Writes the file.
pub(super) fn run(arguments: &ExportArguments) -> Result<(), Failure> {
    let destination = Destination::open("--perfetto", &arguments.perfetto)?;
    destination.fill(&perfetto::export(&arguments.traces.merged()?))
}
