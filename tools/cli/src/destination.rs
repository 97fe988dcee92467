//! Destinations: files for results, checked before the work begins.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file for a result. Before the work begins a test shows that it can be written, so that no result is lost at the
/// end. A command that ends without a result, by an error or by Ctrl-C, leaves the file as it was.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
}

impl Destination {
    /// Checks that the file given for `argument` can be written.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if it cannot.
    pub(crate) fn open(argument: &str, path: &Path) -> Result<Self, Failure> {
        check_writable(path).map_err(|error| Failure::Argument {
            argument: argument.to_owned(),
            problem: format!("{}: {error}; name a file that can be written", path.display()),
        })?;
        Ok(Self { path: path.to_owned() })
    }

    /// Writes the result, in place of the previous content.
    ///
    /// # Errors
    ///
    /// The disk is full, or the file can no longer be written.
    pub(crate) fn fill(self, content: &[u8]) -> Result<(), Failure> {
        let path = self.path;
        fs::write(&path, content)
            .map_err(|error| Failure::of(&format!("write {}", path.display()), &error))
    }
}

fn check_writable(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    match options.clone().create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        // Opening a pipe without a reader would block.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let existing = fs::metadata(path)?;
            if existing.is_file() || existing.is_dir() {
                options.open(path).map(drop)
            } else {
                Ok(())
            }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
