//! The heap of this process: how much of it is allocated, as the allocator counts it.
//!
//! The memory of a process also grows by what was freed and lies between pieces that are still in
//! use. That depends on the order of allocations, and rises in steps towards the most that is ever
//! needed at once (lab/log, 2026-11-27). What a process keeps is in what it has allocated.

#![expect(unsafe_code, reason = "mallinfo2 of the C library, for which there is no safe function")]

use std::fs::File;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use super::ledger::Ledger;
use apus_testbed::clock;

/// Time between two records.
const INTERVAL: Duration = Duration::from_millis(250);

/// Records the heap of this process in the ledger until the process ends, from a thread of its own. Does nothing with a C library
/// that does not count.
pub(super) fn record(ledger: &Ledger, life: u32) -> io::Result<()> {
    if allocated().is_none() {
        return Ok(());
    }
    let file = ledger.heap_writer(life)?;
    thread::Builder::new().name("soak-heap".to_owned()).spawn(move || write(file))?;
    Ok(())
}

fn write(mut file: File) {
    // When the disk is full, what was recorded is all that there is.
    while let Some(bytes) = allocated()
        && file.write_all(&record_of(clock::now(), bytes)).is_ok()
    {
        thread::sleep(INTERVAL);
    }
}

/// Bytes of a record.
pub(super) const RECORD: usize = 16;

fn record_of(time: u64, bytes: u64) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&time.to_le_bytes());
    record[8..].copy_from_slice(&bytes.to_le_bytes());
    record
}

/// Returns the time of a record in seconds, and the allocated kB.
pub(super) fn read_record(record: &[u8; RECORD]) -> (f64, f64) {
    let [time, bytes] = [0, 8].map(|at| {
        u64::from_le_bytes(*record[at..].first_chunk().expect("a record has two numbers"))
    });
    (time as f64 / 1e9, bytes as f64 / 1024.0)
}

/// Returns the bytes that are allocated and not freed, in the heap and outside it.
#[cfg(target_env = "gnu")]
fn allocated() -> Option<u64> {
    // SAFETY: mallinfo2 takes nothing, may be called at any time, and returns numbers (mallinfo(3)).
    let info = unsafe { libc::mallinfo2() };
    Some((info.uordblks + info.hblkhd) as u64)
}

/// Returns `None`: the C library does not count.
#[cfg(not(target_env = "gnu"))]
const fn allocated() -> Option<u64> {
    None
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_counts_until_it_is_freed() {
        const LARGE: usize = 64 << 20;
        let before = allocated().unwrap();
        let buffer = vec![1_u8; LARGE];
        let during = allocated().unwrap();
        assert_eq!(buffer.iter().map(|byte| usize::from(*byte)).sum::<usize>(), LARGE);
        drop(buffer);
        let after = allocated().unwrap();
        // Other tests allocate, too.
        assert!(during > before + LARGE as u64 / 2, "{before} {during}");
        assert!(after < during - LARGE as u64 / 2, "{during} {after}");
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        assert_eq!(read_record(&record_of(1_500_000_000, 2_048)), (1.5, 2.0));
    }
}
