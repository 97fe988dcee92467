//! Where will a result be kept?

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file for a result. Whether it can be written is tried before the work begins, so that no result is
/// lost; but without a result, be it by an error or by Ctrl-C, everything stays as it was.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
}

impl Destination {
    /// Tries the file that was given for `argument`.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn open(argument: &str, path: &Path) -> Result<Self, Failure> {
        try_to_write(path).map_err(|error| Failure::Argument {
            argument: argument.to_owned(),
            problem: format!("{}: {error}; name a file that can be written", path.display()),
        })?;
        Ok(Self { path: path.to_owned() })
    }

    /// Replaces what is in the file.
    ///
    /// # Errors
    ///
    /// The disk is full, or the file cannot be written any more.
    pub(crate) fn fill(self, content: &[u8]) -> Result<(), Failure> {
        let path = self.path;
        fs::write(&path, content)
            .map_err(|error| Failure::of(&format!("write {}", path.display()), &error))
    }
}

fn try_to_write(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    match options.clone().create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        // A pipe without a reader would block, and needs no trial.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let in_the_way = fs::metadata(path)?;
            if in_the_way.is_file() || in_the_way.is_dir() {
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
        Destination::open("--output", &new).unwrap();
        Destination::open("--output", &old).unwrap();
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
