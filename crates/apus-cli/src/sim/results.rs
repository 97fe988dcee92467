//! How does a sweep's result come out?

use std::path::PathBuf;

use apus_sim::report::Findings;
use clap::Args;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::output;

/// How results are shown.
#[derive(Debug, Args)]
pub(super) struct Results {
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page with charts, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Where results go, once they are there.
#[derive(Debug)]
pub(super) struct Open {
    json: bool,
    html: Option<Destination>,
}

impl Results {
    /// Whether everything can be written is found out before the work.
    pub(super) fn open(&self) -> Result<Open, Failure> {
        let html = self.html.as_ref().map(|path| Destination::open("--html", path)).transpose()?;
        Ok(Open { json: self.json, html })
    }
}

impl Open {
    /// Shows them.
    pub(super) fn show(self, findings: &Findings) -> Result<(), Failure> {
        if self.json {
            output::line(&findings.outcome.json())
        } else {
            output::write(findings.to_string())
        }
    }
}
