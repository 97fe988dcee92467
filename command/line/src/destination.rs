//! Destinations: files for results, checked before the work starts.

use std::io;
use std::path::Path;

use apus_report::output_file::OutputFile;

use crate::failure::Failure;

/// A file for a result. It is tested for writability before the work starts, so that no result is
/// lost at the end. A command that ends without a result, by an error or by Ctrl-C, leaves the file
/// unchanged.
#[derive(Debug)]
pub struct Destination(OutputFile);

/// Room for a page, in bytes. The demo's page has 100 kB, the longest ones three times as much.
const PAGE_BYTES: usize = 512 << 10;

impl Destination {
    /// Checks that the file given for `argument` is writable.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if it cannot.
    pub fn open(argument: &str, path: &Path) -> Result<Self, Failure> {
        Self::checked(argument, path, OutputFile::open(path))
    }

    /// Checks that the file given for `argument` is writable, and that the disk has room for a page
    /// with charts.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if it cannot.
    pub fn open_page(argument: &str, path: &Path) -> Result<Self, Failure> {
        Self::checked(argument, path, OutputFile::open_with_room(path, PAGE_BYTES))
    }

    fn checked(argument: &str, path: &Path, file: io::Result<OutputFile>) -> Result<Self, Failure> {
        file.map(Self).map_err(|error| Failure::Argument {
            argument: argument.to_owned(),
            problem: format!("{}: {error}; name a file that can be written", path.display()),
        })
    }

    /// Writes the result, replacing the previous content.
    ///
    /// # Errors
    ///
    /// The disk is full, or the file can no longer be written.
    pub fn fill(&self, content: &[u8]) -> Result<(), Failure> {
        let failure = |error| Failure::of(&format!("write {}", self.0.path().display()), &error);
        self.0.write(content).map_err(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_result_replaces_the_previous_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "a much longer text").unwrap();
        let destination = Destination::open("--output", &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a much longer text");
        destination.fill(b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
    }

    #[test]
    fn without_a_result_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs::write(&old, "old").unwrap();
        Destination::open("--output", &new).unwrap();
        Destination::open("--output", &old).unwrap();
        assert!(!new.exists());
        assert_eq!(fs::read(&old).unwrap(), b"old");
    }

    #[test]
    fn an_unwritable_file_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let error = Destination::open("--output", folder.path()).unwrap_err();
        let Failure::Argument { argument, problem } = error else { panic!("{error:?}") };
        assert_eq!(argument, "--output");
        assert!(problem.contains(&folder.path().display().to_string()), "{problem}");
    }
}
