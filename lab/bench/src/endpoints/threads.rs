//! Background threads of the calling process, as the system counts them.

use std::fs;

use apus_testbed::error::{Doing, Error};

/// Returns the number of the process's threads that run the loops of endpoints while the
/// application does not.
pub(super) fn background_threads() -> Result<u64, Error> {
    let folder = "/proc/self/task";
    let tasks = fs::read_dir(folder).doing(|| format!("list {folder}"))?;
    // A thread may end while its name is read.
    let names =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    Ok(names.filter(|name| name.trim() == BACKGROUND).count() as u64)
}

/// Name of these threads.
const BACKGROUND: &str = "apus-background";
