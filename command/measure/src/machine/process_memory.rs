//! Memory of a process as counted by the system, and its descriptor limit.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Doing, Error};

/// Returns the bytes of memory that a process has touched and that no file backs; without a process
/// id, of this process.
///
/// # Errors
///
/// The process has ended, or belongs to another user.
pub fn anonymous_memory(process: Option<u32>) -> Result<u64, Error> {
    let of = process.map_or_else(|| "self".to_owned(), |number| number.to_string());
    let file = format!("/proc/{of}/smaps_rollup");
    let text = fs::read_to_string(&file).doing(|| format!("read {file}"))?;
    let kilobytes = field(&text, "Anonymous:");
    let kilobytes = kilobytes.ok_or_else(|| Error::Peer(format!("{file} has no `Anonymous:`")))?;
    Ok(kilobytes << 10)
}

/// Returns the number after `name` in lines of `NAME NUMBER UNIT`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Descriptor limit that root sets for itself. Chosen by us: ten for each of ten thousand
/// connections.
const DESCRIPTORS: u64 = 100_000;

/// Raises the descriptor limit of this process to the maximum allowed by the system; for root, to
/// at least 100,000.
pub fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let more = maximum.map(|maximum| maximum.max(DESCRIPTORS));
    // If neither succeeds, the error of a later open reports the shortage.
    for limit in [more, maximum] {
        if setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).is_ok() {
            return;
        }
    }
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
        let before = anonymous_memory(None).unwrap();
        let memory = std::hint::black_box(vec![1_u8; 8 << 20]);
        // Other tests of this process allocate and free memory meanwhile.
        assert!(anonymous_memory(Some(std::process::id())).unwrap() > before + (4 << 20));
        drop(memory);
    }

    #[test]
    fn the_limit_of_descriptors_is_not_lowered() {
        let before = getrlimit(Resource::Nofile);
        raise_descriptor_limit();
        let after = getrlimit(Resource::Nofile);
        assert_eq!(after.current, after.maximum);
        assert!(after.maximum.unwrap_or(u64::MAX) >= before.maximum.unwrap_or(u64::MAX));
    }
}
