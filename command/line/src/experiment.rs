//! Experiments: a command that runs an experiment and shows its findings.

use std::path::{Path, PathBuf};

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use clap::Args;
use serde_json::Value;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::files::{Files, OpenFiles};
use crate::output;

// The options of an experiment, and where its findings go. The experiment explains the command, so
// neither this type nor `Results` has a documentation comment, which would replace that
// explanation.
#[derive(Debug, Args)]
#[allow(missing_docs, reason = "it would replace the experiment's explanation")]
pub struct ExperimentArguments<E: Args> {
    #[command(flatten)]
    experiment: E,
    #[command(flatten)]
    results: Results,
}

#[derive(Debug, Args)]
#[allow(missing_docs, reason = "it would replace the experiment's explanation")]
pub struct Results {
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

/// The destinations of findings, checked before the work.
#[derive(Debug)]
pub struct OpenResults {
    json: bool,
    files: OpenFiles,
    csv: Option<PathBuf>,
}

impl<E: Args + Experiment> ExperimentArguments<E>
where
    Failure: From<E::Error>,
{
    /// Runs the experiment and shows its findings.
    ///
    /// # Errors
    ///
    /// The experiment failed, or a file cannot be written.
    pub fn run(&self) -> Result<(), Failure> {
        let results = self.results.open()?;
        results.show(&self.experiment.run()?)
    }
}

impl Results {
    /// Checks that every file can be written.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if one cannot.
    pub fn open(&self) -> Result<OpenResults, Failure> {
        Ok(OpenResults { json: self.json, files: self.files.open()?, csv: None })
    }
}

impl OpenResults {
    /// Adds files of comma-separated values: `path`, and others next to it.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if the file cannot be written.
    pub fn with_csv(self, path: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = path {
            Destination::open("--csv", path)?;
        }
        Ok(Self { csv: path.map(Path::to_owned), ..self })
    }

    /// Writes the files and prints the findings.
    ///
    /// # Errors
    ///
    /// A file can no longer be written, or the question of the experiment was not answered.
    pub fn show(self, findings: &Findings) -> Result<(), Failure> {
        // Each is tried, whether the others succeed or not: a measurement is not lost to a full
        // disk, nor to a closed pipe.
        let csv = self.csv.as_deref();
        let filled = self.files.fill(|| findings.html(), || findings.svg_files());
        let filled_csv = csv.map_or(Ok(()), |path| fill_csv(path, findings));
        print(findings, self.json)?;
        filled?;
        filled_csv?;
        answered(findings)
    }
}

/// Writes the files of comma-separated values: `path`, and others next to it.
fn fill_csv(path: &Path, findings: &Findings) -> Result<(), Failure> {
    for (name, content) in &findings.csv_files {
        Destination::open("--csv", &beside(path, name))?.fill(content.as_bytes())?;
    }
    Ok(())
}

/// Reports rows without a result.
///
/// # Errors
///
/// [`Failure::Found`] if the question of the experiment was not answered, or promises were broken
/// (member `broken`).
pub fn answered(findings: &Findings) -> Result<(), Failure> {
    let missing: Vec<&str> = findings.outcome.missing().collect();
    if !missing.is_empty() {
        output::note(&format!("no run of {} succeeded", missing.join(", nor of ")));
    }
    let broken = findings.outcome.members.get("broken").and_then(Value::as_array);
    let kept = broken.is_none_or(Vec::is_empty);
    if kept && findings.outcome.is_answered() { Ok(()) } else { Err(Failure::Found(1)) }
}

/// Prints findings as text or as one JSON object.
///
/// # Errors
///
/// As for [`output::write`].
pub fn print(findings: &Findings, json: bool) -> Result<(), Failure> {
    if json { output::line(&findings.outcome.json()) } else { output::write(findings.to_string()) }
}

/// Returns the path of a file of comma-separated values: `path` for the runs, and names derived
/// from it for the others.
fn beside(path: &Path, name: &str) -> PathBuf {
    if name == "runs.csv" {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_are_called_after_the_first() {
        let path = Path::new("results/w4.csv");
        assert_eq!(beside(path, "runs.csv"), path);
        assert_eq!(beside(path, "sizes.csv"), Path::new("results/w4-sizes.csv"));
        assert_eq!(beside(Path::new("w4"), "switch.csv"), Path::new("w4-switch.csv"));
    }
}
