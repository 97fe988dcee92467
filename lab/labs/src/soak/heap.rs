//! The heap of this process: the allocated bytes, as counted by the allocator.
//!
//! The memory of a process also grows by freed pieces between pieces in use. That depends on the
//! order of allocations, and rises in steps towards the greatest need (lab/log,
//! 2026-11-27). A leak shows in the allocated bytes.

#![expect(unsafe_code, reason = "mallinfo2 of the C library, for which there is no safe function")]

use std::io;
use std::thread;
use std::time::Duration;

use super::heap_file::HeapWriter;
use super::ledger::Ledger;
use apus_testbed::clock;

/// Time between two records.
const INTERVAL: Duration = Duration::from_millis(250);

/// Records the heap of this process in the ledger until the process ends, in a separate thread.
/// Does nothing with a C library that does not count.
pub(super) fn record(ledger: &Ledger, life: u32) -> io::Result<()> {
    if allocated().is_none() {
        return Ok(());
    }
    let writer = ledger.heap_writer(life)?;
    thread::Builder::new().name("soak-heap".to_owned()).spawn(move || write(writer))?;
    Ok(())
}

fn write(mut writer: HeapWriter) {
    // A full disk ends the record.
    while let Some(bytes) = allocated()
        && writer.add(clock::now(), bytes).is_ok()
    {
        thread::sleep(INTERVAL);
    }
}

/// Returns the allocated bytes, in the heap and outside it.
#[cfg(target_env = "gnu")]
fn allocated() -> Option<u64> {
    // SAFETY: mallinfo2 takes nothing, may be called at any time, and returns numbers
    // (mallinfo(3)).
    let info = unsafe { libc::mallinfo2() };
    Some((info.uordblks + info.hblkhd) as u64)
}

/// Returns `None`: the C library does not count.
#[cfg(not(target_env = "gnu"))]
const fn allocated() -> Option<u64> {
    None
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use super::*;

    #[test]
    fn allocated_bytes_count_until_they_are_freed() {
        const LARGE: usize = 64 << 20;
        let before = allocated().unwrap();
        let buffer = vec![1_u8; LARGE];
        let during = allocated().unwrap();
        assert_eq!(buffer.iter().map(|byte| usize::from(*byte)).sum::<usize>(), LARGE);
        drop(buffer);
        let after = allocated().unwrap();
        // Other tests allocate at the same time.
        assert!(during > before + LARGE as u64 / 2, "{before} {during}");
        assert!(after < during - LARGE as u64 / 2, "{during} {after}");
    }
}
