//! What can be asked of every report, and where does it go?

use apus_lab::traces::Shown;
use apus_trace::merge::Merged;
use clap::Args;

use super::traces::Traces;
use crate::failure::Failure;
use crate::files::Files;
use crate::output;

/// The traces, and how what is found in them is shown.
#[derive(Debug, Args)]
pub(super) struct Asked {
    #[command(flatten)]
    traces: Traces,
    /// Print one JSON object instead of tables; names that end with `_us` are microseconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

impl Asked {
    /// Reads the traces, makes the report and shows it.
    ///
    /// # Errors
    ///
    /// A trace cannot be read, or what was found not be written.
    pub(super) fn show(&self, report: impl FnOnce(&Merged) -> Shown) -> Result<(), Failure> {
        let files = self.files.open()?;
        let shown = report(&self.traces.merged()?);
        files.fill(|| shown.html(), || shown.svg_files())?;
        if self.json { output::line(&shown.json()) } else { output::write(shown.to_string()) }
    }
}

/// Microseconds as they are asked for, in nanoseconds.
pub(super) fn nanos(micros: f64) -> i64 {
    (micros * 1e3).round() as i64
}

/// A time in microseconds from 0 to an hour.
pub(super) fn micros(text: &str) -> Result<f64, String> {
    let good = text.parse().ok().filter(|micros: &f64| (0.0..=3.6e9).contains(micros));
    good.ok_or_else(|| "from 0 to 3600000000 microseconds; try 50".to_owned())
}
