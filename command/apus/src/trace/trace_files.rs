//! Trace files: read and merged.

use std::path::{Path, PathBuf};

use apus_trace::{FileError, Trace};
use apus_traces::merge::MergedTraces;
use clap::Args;

use apus_command_line::failure::Failure;

/// The files of a report or an export.
#[derive(Debug, Args)]
pub(super) struct TraceFiles {
    /// Traces of processes that exchanged messages; all times are on the clock of the first
    #[arg(value_name = "FILE", required = true)]
    traces: Vec<PathBuf>,
}

impl TraceFiles {
    /// Reads the traces and aligns them in time.
    ///
    /// # Errors
    ///
    /// A file is not a trace, is damaged, or belongs to the same process as another file; the
    /// message contains its name.
    pub(super) fn merged(&self) -> Result<MergedTraces, Failure> {
        let mut traces = Vec::new();
        for path in &self.traces {
            let trace = Trace::load(path).map_err(|error| failure(with_name(path, &error)))?;
            traces.push((path.display().to_string(), trace));
        }
        MergedTraces::of(traces).map_err(|error| failure(error.to_string()))
    }
}

/// Returns the error with the file name, unless it already contains the name.
fn with_name(path: &Path, error: &FileError) -> String {
    let (name, text) = (path.display().to_string(), error.to_string());
    if text.starts_with(&name) { text } else { format!("{name}: {text}") }
}

fn failure(problem: String) -> Failure {
    Failure::Argument { argument: "FILE".to_owned(), problem }
}
