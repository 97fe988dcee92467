//! Chart files: a page and SVG files that show a result.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::destination::Destination;
use crate::failure::Failure;

// Files with charts. Not a documentation comment, which would replace the explanation of a command.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Write a page with charts, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the charts alone into this directory, as SVG files; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// The files, checked and ready for a result.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    html: Option<Destination>,
    svg: Option<PathBuf>,
}

impl Files {
    /// Checks before the work that everything can be written, and creates the directory.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if something cannot be written.
    pub(crate) fn open(&self) -> Result<OpenFiles, Failure> {
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
        Ok(OpenFiles { html, svg: self.svg.clone() })
    }
}

impl OpenFiles {
    /// Writes the files that were requested: the page, and each chart, which `svg` returns as its file name and
    /// content.
    ///
    /// # Errors
    ///
    /// The disk is full, or a file can no longer be written.
    pub(crate) fn fill(
        self,
        html: impl FnOnce() -> String,
        svg: impl FnOnce() -> Vec<(String, String)>,
    ) -> Result<(), Failure> {
        if let Some(page) = self.html {
            page.fill(html().as_bytes())?;
        }
        if let Some(directory) = self.svg {
            for (name, content) in svg() {
                let path = directory.join(name);
                fs::write(&path, content)
                    .map_err(|error| Failure::of(&format!("write {}", path.display()), &error))?;
            }
        }
        Ok(())
    }
}
