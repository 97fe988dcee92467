//! Memory and threads of the calling process, as the system counts them.

use std::fs;

use apus_testbed::error::{Doing, Error};

/// Returns the bytes of memory that the process has touched and no file backs.
pub(super) fn touched() -> Result<u64, Error> {
    let file = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(file).doing(|| format!("read {file}"))?;
    let kilobytes = field(&text, "Anonymous:");
    let kilobytes = kilobytes.ok_or_else(|| Error::Peer(format!("{file} has no `Anonymous:`")))?;
    Ok(kilobytes << 10)
}

/// Returns the number of threads of the process that run the loops of endpoints while the application does not.
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

/// Returns the number behind `name` in lines of `NAME NUMBER UNIT`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_is_parsed() {
        let text = "00400000-7ffd rollup\nRss:     884 kB\nAnonymous:    128 kB\n";
        assert_eq!((field(text, "Anonymous:"), field(text, "Shared:")), (Some(128), None));
    }

    #[test]
    fn memory_counts_when_it_is_touched() {
        let before = touched().unwrap();
        let memory = std::hint::black_box(vec![1_u8; 8 << 20]);
        // Other tests of this process take and free memory meanwhile.
        assert!(touched().unwrap() > before + (4 << 20));
        drop(memory);
    }
}
