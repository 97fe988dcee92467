//! Chart files: a page and SVG files that show a result.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::destination::Destination;
use crate::failure::Failure;

// Files with charts. Not a documentation comment, which would replace the explanation of a command.
#[derive(Debug, Args)]
#[allow(missing_docs, reason = "it would replace the explanation of a command")]
pub struct Files {
    /// Write a page with charts, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the charts alone into this directory, as SVG files; it is made if it is missing. A
    /// path that ends in .svg is a file for the first chart
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// The files, checked and ready for a result.
#[derive(Debug)]
pub struct OpenFiles {
    html: Option<Destination>,
    svg: Option<Charts>,
}

/// Destination of charts.
#[derive(Debug)]
enum Charts {
    /// All of them, into a directory.
    All(PathBuf),
    /// The first one, into a file.
    First(Destination),
}

impl Charts {
    /// Checks that a file can be written, or creates the directory.
    fn open(path: &Path) -> Result<Self, Failure> {
        if path.extension().is_some_and(|ending| ending == "svg") && !path.is_dir() {
            return Destination::open("--svg", path).map(Self::First);
        }
        fs::create_dir_all(path).map_err(|error| Failure::Argument {
            argument: "--svg".to_owned(),
            problem: format!("{}: {error}; name a directory that can be written", path.display()),
        })?;
        Ok(Self::All(path.to_owned()))
    }

    fn fill(self, charts: Vec<(String, String)>) -> Result<(), Failure> {
        let directory = match self {
            Self::All(directory) => directory,
            Self::First(file) => {
                let Some((_, chart)) = charts.into_iter().next() else {
                    return Err(Failure::Work("there is no chart for --svg".to_owned()));
                };
                return file.fill(chart.as_bytes());
            }
        };
        for (name, content) in charts {
            Destination::open("--svg", &directory.join(name))?.fill(content.as_bytes())?;
        }
        Ok(())
    }
}

impl Files {
    /// Checks before the work that all files are writable, and creates the directory.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if a file is not writable.
    pub fn open(&self) -> Result<OpenFiles, Failure> {
        let html =
            self.html.as_ref().map(|path| Destination::open_page("--html", path)).transpose()?;
        let svg = self.svg.as_deref().map(Charts::open).transpose()?;
        Ok(OpenFiles { html, svg })
    }
}

impl OpenFiles {
    /// Writes the requested files: the page, and each chart; `svg` returns a chart's file name and
    /// content.
    ///
    /// # Errors
    ///
    /// The disk is full, or a file can no longer be written.
    pub fn fill(
        self,
        html: impl FnOnce() -> String,
        svg: impl FnOnce() -> Vec<(String, String)>,
    ) -> Result<(), Failure> {
        if let Some(page) = self.html {
            page.fill(html().as_bytes())?;
        }
        if let Some(charts) = self.svg {
            charts.fill(svg())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charts() -> Vec<(String, String)> {
        vec![("a.svg".to_owned(), "first".to_owned()), ("b.svg".to_owned(), "second".to_owned())]
    }

    fn fill(svg: &Path) {
        let files = Files { html: None, svg: Some(svg.to_owned()) };
        files.open().unwrap().fill(String::new, charts).unwrap();
    }

    #[test]
    fn a_directory_gets_every_chart_and_a_file_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, file) = (folder.path().join("charts"), folder.path().join("chart.svg"));
        fill(&directory);
        fill(&file);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!(read(&directory.join("a.svg")), "first");
        assert_eq!(read(&directory.join("b.svg")), "second");
        assert_eq!(read(&file), "first");
    }

    #[test]
    fn a_directory_may_be_called_like_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("charts.svg");
        fs::create_dir(&directory).unwrap();
        fill(&directory);
        assert!(directory.join("b.svg").exists());
    }
}
