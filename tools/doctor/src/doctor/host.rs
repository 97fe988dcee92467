//! What does the system say about itself?

use std::fs;
use std::path::{Path, PathBuf};

/// The one reader through which all checks see `/proc` and `/sys`.
///
/// A folder may stand in for parts of them: a file below it is read in place of the system's own, and so is a folder.
/// Tests plant there what no namespace has of its own, such as the clock source.
#[derive(Clone, Debug, Default)]
pub struct Host {
    root: Option<PathBuf>,
}

impl Host {
    /// The system, with what stands below `root` in place of its own.
    #[must_use]
    pub const fn new(root: Option<PathBuf>) -> Self {
        Self { root }
    }

    /// What a file holds, without the spaces around it; `None` if it cannot be read.
    #[must_use]
    pub fn text(&self, file: &str) -> Option<String> {
        // Some files of the kernel hold what is no text; what matters does.
        let bytes = fs::read(self.place(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The number that is all a file holds.
    #[must_use]
    pub fn number<N: std::str::FromStr>(&self, file: &str) -> Option<N> {
        self.text(file)?.parse().ok()
    }

    /// Names in a folder, in their order; none if there is no such folder.
    #[must_use]
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Whether there is such a file or folder.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.place(file).exists()
    }

    /// Where it really is.
    fn place(&self, file: &str) -> PathBuf {
        let planted = self.root.as_ref().map(|root| root.join(file.trim_start_matches('/')));
        planted.filter(|planted| planted.exists()).unwrap_or_else(|| Path::new(file).to_owned())
    }
}

#[cfg(test)]
pub(super) mod planted {
    //! How does a test plant what the system says?

    use super::*;

    /// A host of which these files say this, and the folder that they are in.
    pub(crate) fn host(files: &[(&str, &str)]) -> (Host, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let place = root.path().join(file.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, content).unwrap();
        }
        (Host::new(Some(root.path().to_owned())), root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planted_comes_first_and_the_rest_is_the_systems() {
        let (host, _root) = planted::host(&[("/proc/sys/net/core/rmem_max", "4711\n")]);
        assert_eq!(host.number("/proc/sys/net/core/rmem_max"), Some(4711));
        let real = Host::default();
        assert_eq!(host.text("/proc/version"), real.text("/proc/version"));
        assert!(host.text("/proc/version").is_some() && host.has("/proc/version"));
        assert_eq!(host.names("/proc/sys/net/core"), ["rmem_max"], "a folder as a whole");
        assert_eq!((host.text("/no/such/file"), host.names("/no/such").len()), (None, 0));
    }
}
