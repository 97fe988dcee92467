//! Files of heap sizes: the allocated bytes of a process over time.

use std::fs::File;
use std::io::{self, Write};

/// Bytes of a record: time and size.
const RECORD: usize = 16;

/// A file that sizes are appended to.
pub(super) struct HeapWriter(File);

impl HeapWriter {
    /// Returns the writer of a new file.
    pub(super) const fn new(file: File) -> Self {
        Self(file)
    }

    /// Appends the allocated `bytes` at `time`, in nanoseconds of the common monotonic clock.
    pub(super) fn add(&mut self, time: u64, bytes: u64) -> io::Result<()> {
        self.0.write_all(&record(time, bytes))
    }
}

fn record(time: u64, bytes: u64) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&time.to_le_bytes());
    record[8..].copy_from_slice(&bytes.to_le_bytes());
    record
}

/// Returns the times in seconds and the sizes in kB in a file.
pub(super) fn read(bytes: &[u8]) -> Vec<(f64, f64)> {
    let record = |record: &[u8; RECORD]| {
        let [time, bytes] = [0, 8].map(|at| {
            u64::from_le_bytes(*record[at..].first_chunk().expect("a record has two numbers"))
        });
        (time as f64 / 1e9, bytes as f64 / 1024.0)
    };
    bytes.as_chunks().0.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back() {
        assert_eq!(read(&record(1_500_000_000, 2_048)), [(1.5, 2.0)]);
    }
}
