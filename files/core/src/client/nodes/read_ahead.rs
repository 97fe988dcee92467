//! Read-ahead: requests bytes of a sequentially read file before a program reads them.
//!
//! A read that starts where the last read of its file ended continues a sequence. From its second
//! read on, a sequence has a window twice as long as the bytes it has read, and several calls for
//! parts of the window are outstanding at once.
//!
//! - **FSAHEAD-1** At most [`MOST_WINDOW`] bytes of a file and [`MOST_BYTES`] of all files are
//!   requested ahead of their readers, and kept until they are read.
//! - **FSAHEAD-2** A read that continues no sequence requests only its own bytes.
//! - **FSAHEAD-3** Bytes that were requested ahead are used under the same conditions as those of
//!   every other read: FSCLIENT-2 and FSCLIENT-5.

use std::collections::BTreeMap;

use crate::wire::Ino;

/// Length of one call. Chosen by us: long enough that calls cost little, short enough that the
/// first bytes arrive early.
pub(in crate::client) const MOST_CALL: u64 = 512 << 10;
/// Bytes ahead of the reader of one file. Rationale: hides a round trip of 10 ms at 400 MB/s.
const MOST_WINDOW: u64 = 4 << 20;
/// Bytes ahead of all readers.
const MOST_BYTES: u64 = 64 << 20;
/// Maximum number of files whose sequences are tracked. The least recently read one is replaced.
const MOST_STREAMS: usize = 64;
/// Bytes before the last read that may belong to outstanding reads: the longest read-ahead of a
/// kernel.
const BEHIND: u64 = 1 << 20;

/// Reads of one file.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Start of the sequence's next read.
    next: u64,
    /// Bytes that the sequence has read.
    run: u64,
    /// Whether a read has continued another one.
    is_sequence: bool,
    /// End of the requested bytes.
    ahead: u64,
    /// When the file was read last, in reads.
    used: u64,
}

impl Stream {
    const fn new(offset: u64, end: u64, used: u64) -> Self {
        Self { next: end, run: end - offset, is_sequence: false, ahead: end, used }
    }

    /// Records a read.
    fn note(&mut self, offset: u64, end: u64, now: u64) {
        let is_next = offset >= self.next && offset <= self.ahead;
        let is_repeated = end <= self.next && offset >= self.next - self.run.min(BEHIND);
        if is_next {
            self.run += end - self.next;
            self.next = end;
            self.is_sequence = true;
            self.ahead = self.ahead.max(end);
        } else if !is_repeated {
            *self = Self::new(offset, end, now);
        }
        self.used = now;
    }

    /// Returns the length of its window.
    fn window(&self) -> u64 {
        if self.is_sequence { (2 * self.run).min(MOST_WINDOW) } else { 0 }
    }

    /// Returns the range to request now in a file of `size` bytes, of at most `room` bytes, and
    /// marks it as requested.
    fn take_due(&mut self, size: u64, room: u64) -> (u64, u64) {
        let (from, window) = (self.ahead, self.window());
        let until = (self.next + window).min(size).min(from.saturating_add(room));
        // Long parts, unless it is the last one.
        let least = if until == size { 1 } else { (window / 4).clamp(1, MOST_CALL) };
        if until < from.saturating_add(least) {
            return (from, from);
        }
        self.ahead = until;
        (from, until)
    }
}

/// Sequences of reads.
#[derive(Debug, Default)]
pub(in crate::client) struct ReadAhead {
    streams: BTreeMap<Ino, Stream>,
    reads: u64,
}

impl ReadAhead {
    /// Records a read. Returns a file that is no longer read ahead.
    pub(in crate::client) fn note(&mut self, file: Ino, offset: u64, end: u64) -> Option<Ino> {
        self.reads += 1;
        let now = self.reads;
        if let Some(stream) = self.streams.get_mut(&file) {
            stream.note(offset, end, now);
            return None;
        }
        let oldest = (self.streams.len() >= MOST_STREAMS)
            .then(|| self.streams.iter().min_by_key(|(_, stream)| stream.used))
            .flatten()
            .map(|(file, _)| *file);
        oldest.map(|file| self.streams.remove(&file));
        self.streams.insert(file, Stream::new(offset, end, now));
        oldest
    }

    /// Returns the range of a file to request now, and marks it as requested.
    pub(in crate::client) fn take_due(&mut self, file: Ino, size: u64) -> (u64, u64) {
        if self.streams.get(&file).is_none_or(|stream| !stream.is_sequence) {
            return (0, 0);
        }
        let room = MOST_BYTES.saturating_sub(self.bytes());
        let stream = self.streams.get_mut(&file);
        stream.map_or((0, 0), |stream| stream.take_due(size, room))
    }

    /// Returns the number of bytes that are requested ahead of their readers.
    pub(in crate::client) fn bytes(&self) -> u64 {
        self.streams.values().map(|stream| stream.ahead - stream.next).sum()
    }

    /// Returns the part of a file that is kept until it is read.
    pub(in crate::client) fn kept(&self, file: Ino) -> (u64, u64) {
        let stream = self.streams.get(&file);
        stream.map_or((0, 0), |stream| (stream.next - stream.run.min(BEHIND), stream.ahead))
    }

    /// Restarts a window whose bytes did not arrive, or were dropped.
    pub(in crate::client) fn restart(&mut self, file: Ino) {
        if let Some(stream) = self.streams.get_mut(&file) {
            stream.ahead = stream.next;
        }
    }

    /// Forgets the reads of a file.
    pub(in crate::client) fn forget(&mut self, file: Ino) {
        self.streams.remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;
    const FILE: Ino = Ino(7);

    fn read(ahead: &mut ReadAhead, offset: u64, length: u64) -> (u64, u64) {
        assert_eq!(ahead.note(FILE, offset, offset + length), None);
        ahead.take_due(FILE, SIZE)
    }

    #[test]
    fn the_window_grows_with_the_sequence_and_has_a_limit() {
        let mut ahead = ReadAhead::default();
        assert_eq!(read(&mut ahead, 0, 100), (0, 0));
        assert_eq!(read(&mut ahead, 100, 100), (200, 600));
        // The window has grown from 400 to 600 bytes, and moved by 100.
        assert_eq!(read(&mut ahead, 200, 100), (600, 900));
        let mut end = 900;
        for offset in (300..30 << 20).step_by(100) {
            let (from, until) = read(&mut ahead, offset, 100);
            if from < until {
                assert_eq!(from, end);
                end = until;
            }
            assert!(end <= offset + 100 + MOST_WINDOW);
        }
        assert!(end > (30 << 20) + MOST_WINDOW - MOST_CALL - 100, "{end}");
    }

    #[test]
    fn reads_that_are_repeated_or_in_no_sequence_ask_for_nothing() {
        let mut ahead = ReadAhead::default();
        for offset in [0, 500, 300, 400 << 20, 0] {
            let (from, until) = read(&mut ahead, offset, 100);
            assert_eq!(from, until, "{offset}");
        }
        assert_eq!(read(&mut ahead, 100, 100), (200, 600));
        assert_eq!(read(&mut ahead, 0, 100), (600, 600));
        assert_eq!(ahead.kept(FILE), (0, 600));
        // Requested bytes may be skipped.
        assert_eq!(read(&mut ahead, 300, 100), (600, 1_200));
        assert_eq!(ahead.bytes(), 800);
    }

    #[test]
    fn the_file_that_was_read_longest_ago_makes_room() {
        let mut ahead = ReadAhead::default();
        for file in 0..MOST_STREAMS as u64 {
            assert_eq!(ahead.note(Ino(file), 0, 10), None);
        }
        assert_eq!(ahead.note(Ino(0), 10, 20), None);
        assert_eq!(ahead.note(FILE, 20, 30), None);
        assert_eq!(ahead.note(Ino(1_000), 0, 10), Some(Ino(1)));
    }

    #[test]
    fn all_files_together_have_a_limit() {
        let mut ahead = ReadAhead::default();
        for file in 0..MOST_STREAMS as u64 {
            for part in 0..64 {
                ahead.note(Ino(file), part << 20, (part + 1) << 20);
                ahead.take_due(Ino(file), SIZE);
            }
        }
        assert_eq!(ahead.bytes(), MOST_BYTES);
    }
}
