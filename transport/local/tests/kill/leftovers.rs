//! Shared memory, descriptors and files that a process holds.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Number of mappings of pairs, and of open descriptors.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leftovers {
    mappings: usize,
    descriptors: usize,
}

pub(crate) fn of_this_process() -> Leftovers {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mappings = maps.lines().filter(|line| line.contains("memfd:apus-local")).count();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    Leftovers { mappings, descriptors }
}

/// Files with a name of this crate where such files could be left.
pub(crate) fn on_disk() -> BTreeSet<PathBuf> {
    let entries = ["/dev/shm", "/run", "/tmp"].iter().filter_map(|it| std::fs::read_dir(it).ok());
    // A file of another process may be removed while the folder is read.
    let paths = entries.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.to_string_lossy().contains("apus-local")).collect()
}

/// Asserts that no file or socket name of this process is left on the system. Files that existed
/// `before`, of other processes, are not its own.
pub(crate) fn assert_nothing_left(before: &BTreeSet<PathBuf>) {
    let left: Vec<_> = on_disk().difference(before).cloned().collect();
    assert_eq!(left, Vec::<PathBuf>::new());
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    let own = format!("@apus-local/1/kill/{}/", std::process::id());
    assert!(!sockets.contains(&own), "a name outlives its socket");
}
