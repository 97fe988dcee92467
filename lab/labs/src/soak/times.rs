//! Files of times of the common monotonic clock, in order: at most one per millisecond.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;

/// A file that times are appended to.
pub(super) struct TimesWriter {
    file: File,
    /// Millisecond of the last time.
    last: u64,
}

impl TimesWriter {
    /// Returns the writer of a new file.
    pub(super) const fn new(file: File) -> Self {
        Self { file, last: 0 }
    }

    /// Appends the time `now`, unless the file has a time of this millisecond. Times must not
    /// decrease.
    pub(super) fn add(&mut self, now: u64) -> io::Result<()> {
        if now / MILLISECOND == self.last {
            return Ok(());
        }
        self.last = now / MILLISECOND;
        self.file.write_all(&now.to_le_bytes())
    }
}

/// A file of times.
pub(super) struct Times {
    file: File,
    count: u64,
}

impl Times {
    /// Returns the current content of the file.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let count = file.metadata()?.len() / 8;
        Ok(Self { file, count })
    }

    /// Returns the first time at or after `time`.
    pub(super) fn first_since(&self, time: u64) -> io::Result<Option<u64>> {
        let (mut start, mut end) = (0, self.count);
        while start < end {
            let middle = start.midpoint(end);
            if self.at(middle)? < time {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        if start == self.count { Ok(None) } else { self.at(start).map(Some) }
    }

    /// Returns the last time; `None` if there is none.
    pub(super) fn last(&self) -> io::Result<Option<u64>> {
        self.count.checked_sub(1).map(|last| self.at(last)).transpose()
    }

    fn at(&self, index: u64) -> io::Result<u64> {
        let mut time = [0; 8];
        self.file.read_exact_at(&mut time, index * 8)?;
        Ok(u64::from_le_bytes(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_has_one_time() {
        let mut writer = TimesWriter::new(tempfile::tempfile().unwrap());
        for now in [5_000_000, 5_900_000, 6_000_001] {
            writer.add(now).unwrap();
        }
        let times = Times::new(writer.file).unwrap();
        let first = |time| times.first_since(time).unwrap();
        assert_eq!(first(0), Some(5_000_000));
        assert_eq!((first(5_000_000), first(5_000_001)), (Some(5_000_000), Some(6_000_001)));
        assert_eq!((first(6_000_002), times.last().unwrap()), (None, Some(6_000_001)));
    }

    #[test]
    fn an_empty_file_has_no_time() {
        let times = Times::new(tempfile::tempfile().unwrap()).unwrap();
        assert_eq!((times.first_since(0).unwrap(), times.last().unwrap()), (None, None));
    }
}
