//! The directory of a measurement, in memory if possible; it is removed at the end.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use apus_fuse::Unmount;
use apus_testbed::error::{Doing, Error};

/// A tmpfs of every Linux system.
const TMPFS: &str = "/dev/shm";

/// A new directory. Dropping it removes it with its content; mounts below it are detached first.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    in_memory: bool,
}

impl Workspace {
    /// Creates it.
    pub(super) fn new() -> Result<Self, Error> {
        let name = format!("apus-fs-bench-{}", std::process::id());
        let in_memory = Path::new(TMPFS).join(&name);
        if fs::create_dir(&in_memory).is_ok() {
            return Ok(Self { path: in_memory, in_memory: true });
        }
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).doing(|| format!("create {}", path.display()))?;
        Ok(Self { path, in_memory: false })
    }

    /// Whether no disk is involved.
    pub(super) const fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// Creates a directory in it.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).doing(|| format!("create {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let mounts = mounts_below(&self.path);
        for mount in mounts.iter().rev() {
            // A mount that cannot be detached appears in the next list.
            let _ = apus_fuse::unmount(mount, Unmount::Lazy);
        }
        // Through a mount that is left, files of another place would be removed.
        if mounts_below(&self.path).is_empty() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Returns the mount points below a directory whose path has no special characters: field 5 of
/// proc_pid_mountinfo(5).
fn mounts_below(directory: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    points.filter(|point| point.starts_with(directory)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_with_its_content() {
        let workspace = Workspace::new().unwrap();
        let inner = workspace.directory("one").unwrap();
        fs::write(inner.join("file"), "x").unwrap();
        let path = inner.parent().unwrap().to_owned();
        drop(workspace);
        assert!(!path.exists());
    }

    #[test]
    fn the_mounts_of_this_machine_are_found() {
        assert!(mounts_below(Path::new("/")).contains(&PathBuf::from("/proc")));
        assert_eq!(mounts_below(Path::new("/no/such/place")), [""; 0].map(PathBuf::from));
    }
}
