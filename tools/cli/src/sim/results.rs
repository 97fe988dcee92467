//! How does a sweep's result come out?

use apus_sweep::report::Findings;
use clap::Args;

use crate::failure::Failure;
use crate::files::{Files, OpenFiles};
use crate::output;

/// How results are shown.
#[derive(Debug, Args)]
pub(super) struct Results {
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

/// Where results go, once they are there.
#[derive(Debug)]
pub(super) struct Open {
    json: bool,
    files: OpenFiles,
}

impl Results {
    /// Whether everything can be written is found out before the work.
    pub(super) fn open(&self) -> Result<Open, Failure> {
        Ok(Open { json: self.json, files: self.files.open()? })
    }
}

impl Open {
    /// Shows them.
    pub(super) fn show(self, findings: &Findings) -> Result<(), Failure> {
        self.files.fill(|| findings.html(), || findings.svg_files())?;
        if self.json {
            output::line(&findings.outcome.json())
        } else {
            output::write(findings.to_string())
        }
    }
}
