//! How does a sweep's result come out?

use std::fs;
use std::path::PathBuf;

use apus_lab::simulation::report::Findings;
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
    /// Write the charts alone into this directory, as SVG files; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// Where results go, once they are there.
#[derive(Debug)]
pub(super) struct Open {
    json: bool,
    html: Option<Destination>,
    svg: Option<PathBuf>,
}

impl Results {
    /// Whether everything can be written is found out before the work.
    pub(super) fn open(&self) -> Result<Open, Failure> {
        let html = self.html.as_ref().map(|path| Destination::open("--html", path)).transpose()?;
        if let Some(directory) = &self.svg {
            fs::create_dir_all(directory).map_err(|error| Failure::Argument {
                argument: "--svg".to_owned(),
                problem: format!(
                    "{}: {error}; name a directory that can be written",
                    directory.display()
                ),
            })?;
        }
        Ok(Open { json: self.json, html, svg: self.svg.clone() })
    }
}

impl Open {
    /// Shows them.
    pub(super) fn show(self, findings: &Findings) -> Result<(), Failure> {
        if let Some(page) = self.html {
            page.fill(findings.html().as_bytes())?;
        }
        if let Some(directory) = self.svg {
            for (name, content) in findings.svg_files() {
                let path = directory.join(name);
                fs::write(&path, content)
                    .map_err(|error| Failure::of(&format!("write {}", path.display()), &error))?;
            }
        }
        if self.json {
            output::line(&findings.outcome.json())
        } else {
            output::write(findings.to_string())
        }
    }
}
