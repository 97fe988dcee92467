//! Arguments of every report on traces: the files, and the form of the output.

use apus_traces::merge::Merged;
use apus_traces::view::Shown;
use clap::Args;

use super::trace_files::TraceFiles;
use crate::failure::Failure;
use crate::files::Files;
use crate::output;

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
    pub(super) fn show(&self, report: impl FnOnce(&Merged) -> Shown) -> Result<(), Failure> {
        let files = self.files.open()?;
        let shown = report(&self.traces.merged()?);
        files.fill(|| shown.html(), || shown.svg_files())?;
        if self.json { output::line(&shown.json()) } else { output::write(shown.to_string()) }
    }
}
