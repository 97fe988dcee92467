//! Where will a result be kept?

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file for a result. It is opened before the work begins, so that no result is lost because it
/// cannot be written; what it held before stays until there is a result.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    file: File,
    /// Made here, and still empty.
    blank: bool,
}

impl Destination {
    /// Opens the file that was given for `argument`.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn open(argument: &str, path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true);
        let made = options.clone().create_new(true).open(path);
        let blank = made.is_ok();
        let opened = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path),
            made => made,
        };
        let file = opened.map_err(|error| Failure::Argument {
            argument: argument.to_owned(),
            problem: format!("{}: {error}; name a file that can be written", path.display()),
        })?;
        Ok(Self { path: path.to_owned(), file, blank })
    }

    /// Replaces what is in the file.
    ///
    /// # Errors
    ///
    /// The disk is full, or broken.
    pub(crate) fn fill(mut self, content: &[u8]) -> Result<(), Failure> {
        self.blank = false;
        let Self { file, path, .. } = &mut self;
        let replace = |file: &mut File| {
            // Devices and pipes have no length.
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            file.write_all(content)
        };
        replace(file).map_err(|error| Failure::of(&format!("write {}", path.display()), &error))
    }
}

/// There was no result.
impl Drop for Destination {
    fn drop(&mut self) {
        if self.blank {
            // It may have been moved away; then there is nothing to clear up.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_replaces_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "something much longer").unwrap();
        let destination = Destination::open("--output", &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"something much longer");
        destination.fill(b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
    }

    #[test]
    fn without_a_result_nothing_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs::write(&old, "old").unwrap();
        drop(Destination::open("--output", &new).unwrap());
        drop(Destination::open("--output", &old).unwrap());
        assert!(!new.exists());
        assert_eq!(fs::read(&old).unwrap(), b"old");
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let error = Destination::open("--output", folder.path()).unwrap_err();
        let Failure::Argument { argument, problem } = error else { panic!("{error:?}") };
        assert_eq!(argument, "--output");
        assert!(problem.contains(&folder.path().display().to_string()), "{problem}");
    }
}
