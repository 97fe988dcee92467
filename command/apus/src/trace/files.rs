//! `apus trace files`: file operations.

use apus_traces::view;
use clap::Args;

use super::report::ReportArguments;
use apus_command_line::failure::Failure;

/// Show the way of file operations: kernel, client, network, server, log, and back
///
/// Prints how long operations of each kind took, and for the longest ones each station with its
/// time. It needs the traces of the mount and of the server. Stages of RPCs are shown if both trace
/// all RPCs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace files mount.tt server.tt
  apus trace files mount.tt server.tt --limit 1 --json")]
pub(super) struct FilesArguments {
    #[command(flatten)]
    report: ReportArguments,
    /// Number of operations whose stations are shown
    #[arg(long, value_name = "OPERATIONS", default_value_t = 3)]
    limit: usize,
}

/// Prints the report.
pub(super) fn run(arguments: &FilesArguments) -> Result<(), Failure> {
    arguments.report.show(|merged| view::files(merged, arguments.limit))
}
