//! A path with an existing mount.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process;

use apus_testbed::error::{Doing, Error};

use super::Peer;

/// A new directory on a mount that the user names; it is removed at the end.
#[derive(Debug)]
pub(in crate::bench) struct Given {
    name: String,
    root: PathBuf,
}

impl Given {
    pub(in crate::bench) fn new(name: &str, path: &Path) -> Result<Self, Error> {
        let root = path.join(format!("apus-fs-bench-{}", process::id()));
        std::fs::create_dir(&root).doing(|| format!("create {}", root.display()))?;
        Ok(Self { name: name.to_owned(), root })
    }
}

impl Peer for Given {
    fn name(&self) -> &str {
        &self.name
    }

    fn root(&self) -> &Path {
        &self.root
    }

    /// Has no effect: the way of mounting it is unknown.
    fn make_cold(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Calls syncfs(2), which the kernel does not pass on to all file systems.
    fn settle(&mut self) -> Result<(), Error> {
        let doing = || format!("sync {}", self.root.display());
        let directory = File::open(&self.root).doing(doing)?;
        rustix::fs::syncfs(&directory).doing(doing)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // Files left behind must not cost the result of a measurement.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
