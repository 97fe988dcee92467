//! Arguments of every report on traces: the files, and the form of the output.

use apus_traces::merge::MergedTraces;
use apus_traces::view::ReportView;
use clap::Args;

use super::trace_files::TraceFiles;
use apus_command_line::failure::Failure;
use apus_command_line::files::Files;
use apus_command_line::output;

/// The traces, and how a report on them is printed.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    #[command(flatten)]
    traces: TraceFiles,
    /// Print one JSON object instead of tables; fields whose names end with `_us` are microseconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

impl ReportArguments {
    /// Reads the traces, makes the report and prints it.
    ///
    /// # Errors
    ///
    /// A trace cannot be read, or the report cannot be written.
    pub(super) fn show(
        &self,
        report: impl FnOnce(&MergedTraces) -> ReportView,
    ) -> Result<(), Failure> {
        let files = self.files.open()?;
        let view = report(&self.traces.merged()?);
        files.fill(|| view.html(), || view.svg_files())?;
        if self.json { output::line(&view.json()) } else { output::write(view.to_string()) }
    }
}
