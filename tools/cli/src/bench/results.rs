//! How does the result of a cluster come out?

use std::fmt::Display;
use std::path::{Path, PathBuf};

use apus_report::result::Outcome;
use clap::Args;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::files::{Files, OpenFiles};
use crate::output;

/// Files that show it.
#[derive(Debug, Args)]
pub(super) struct Results {
    #[command(flatten)]
    files: Files,
    /// Write every run as comma-separated values, for spreadsheets; runs by size, by time and by priority come
    /// beside it: FILE-sizes, FILE-short_cdf and FILE-switch
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Where it goes, once it is there.
#[derive(Debug)]
pub(super) struct Open {
    json: bool,
    files: OpenFiles,
    csv: Option<PathBuf>,
}

/// What has been found, in every form that can be asked for.
pub(super) struct Shown<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) tables: &'a dyn Display,
    pub(super) html: &'a dyn Fn() -> String,
    /// Name and content of each.
    pub(super) svg_files: &'a dyn Fn() -> Vec<(String, String)>,
    pub(super) csv_files: &'a dyn Fn() -> Vec<(String, String)>,
    /// Transports without a result.
    pub(super) missing: &'a [String],
}

impl Results {
    /// Whether everything can be written is found out before the work.
    pub(super) fn open(&self, json: bool) -> Result<Open, Failure> {
        if let Some(path) = &self.csv {
            Destination::open("--csv", path)?;
        }
        Ok(Open { json, files: self.files.open()?, csv: self.csv.clone() })
    }
}

impl Open {
    /// Shows it. It is a failure if something is missing.
    pub(super) fn show(self, found: &Shown<'_>) -> Result<(), Failure> {
        self.files.fill(found.html, found.svg_files)?;
        if let Some(path) = &self.csv {
            for (name, content) in (found.csv_files)() {
                Destination::open("--csv", &beside(path, &name))?.fill(content.as_bytes())?;
            }
        }
        if self.json {
            output::line(&found.outcome.json())?;
        } else {
            output::write(found.tables.to_string())?;
        }
        if found.missing.is_empty() {
            return Ok(());
        }
        output::note(&format!("no run of {} succeeded", found.missing.join(", nor of ")));
        Err(Failure::Found(1))
    }
}

/// The file for runs is the one that was asked for; others are called after it.
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
