//! Which traces are looked at?

use std::path::PathBuf;

use apus_trace::Trace;
use apus_trace::merge::Merged;
use clap::Args;

use crate::failure::Failure;

/// The files.
#[derive(Debug, Args)]
pub(super) struct Traces {
    /// Traces of processes that talked with each other; the clock of the first is the one that counts
    #[arg(value_name = "FILE", required = true)]
    traces: Vec<PathBuf>,
}

impl Traces {
    /// Reads them and lays them side by side.
    ///
    /// # Errors
    ///
    /// One is no trace, or broken, or there twice; it says which one, and where.
    pub(super) fn merged(&self) -> Result<Merged, Failure> {
        let mut read = Vec::new();
        for path in &self.traces {
            let trace = Trace::load(path).map_err(|error| wrong(name_once(path, &error)))?;
            read.push((path.display().to_string(), trace));
        }
        Merged::of(read).map_err(|error| wrong(error.to_string()))
    }
}

/// What is wrong, with the name of the file; some errors say it themselves.
fn name_once(path: &std::path::Path, error: &apus_trace::FileError) -> String {
    let name = path.display().to_string();
    let said = error.to_string();
    if said.starts_with(&name) { said } else { format!("{name}: {said}") }
}

fn wrong(problem: String) -> Failure {
    Failure::Argument { argument: "FILE".to_owned(), problem }
}
