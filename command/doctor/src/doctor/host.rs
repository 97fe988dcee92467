//! Access to `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

/// Reader of `/proc` and `/sys`; all checks use it.
///
/// A folder can replace parts of these trees: a file or folder below `root` is read instead of the
/// system's. Tests use it for values that no namespace can change, for instance the clock source.
#[derive(Clone, Debug, Default)]
pub struct SystemFiles {
    root: Option<PathBuf>,
}

impl SystemFiles {
    /// Creates a reader. Files below `root` replace the system's.
    #[must_use]
    pub const fn new(root: Option<PathBuf>) -> Self {
        Self { root }
    }

    /// Returns the content of a file without leading and trailing white space; `None` if it cannot
    /// be read.
    #[must_use]
    pub fn text(&self, file: &str) -> Option<String> {
        // Some kernel files contain invalid UTF-8, but not in the fields used by the checks.
        let bytes = fs::read(self.path(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Returns the number in a file.
    #[must_use]
    pub fn number<N: std::str::FromStr>(&self, file: &str) -> Option<N> {
        self.text(file)?.parse().ok()
    }

    /// Returns the sorted names in a folder; empty if the folder does not exist.
    #[must_use]
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Returns whether such a file or folder exists.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// Returns the path that is actually read.
    fn path(&self, file: &str) -> PathBuf {
        let replacement = self.root.as_ref().map(|root| root.join(file.trim_start_matches('/')));
        replacement.filter(|path| path.exists()).unwrap_or_else(|| Path::new(file).to_owned())
    }
}

#[cfg(test)]
pub(super) mod fixture {
    //! Replacement of system files in tests.

    use super::*;

    /// Creates a reader with these files and contents, and returns it with their folder.
    pub(crate) fn host(files: &[(&str, &str)]) -> (SystemFiles, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let place = root.path().join(file.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, content).unwrap();
        }
        (SystemFiles::new(Some(root.path().to_owned())), root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_files_come_first_and_the_rest_is_the_systems() {
        let (host, _root) = fixture::host(&[("/proc/sys/net/core/rmem_max", "4711\n")]);
        assert_eq!(host.number("/proc/sys/net/core/rmem_max"), Some(4711));
        let real = SystemFiles::default();
        assert_eq!(host.text("/proc/version"), real.text("/proc/version"));
        assert!(host.text("/proc/version").is_some() && host.has("/proc/version"));
        assert_eq!(host.names("/proc/sys/net/core"), ["rmem_max"], "a folder as a whole");
        assert_eq!((host.text("/no/such/file"), host.names("/no/such").len()), (None, 0));
    }
}
