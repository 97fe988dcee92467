//! Ring of one thread's records.
//!
//! A ring has [`RECORDS`] slots; each new record replaces the oldest one. Only its own thread
//! writes to it. Any other thread may read it at any time, without either waiting for the other:
//! the reader discards records that may have been overwritten while it read.
//!
//! # Invariants
//!
//! - **TRACERING-1** `written` is stored after the words of its record, and the words of the next
//!   record are stored after that. A thread that reads a word of record `n`, and then `written`
//!   (with the fences below), therefore reads at least `n`.
//! - **TRACERING-2** A reader keeps record `i` only if `written`, read afterwards, is less than `i
//!   + RECORDS`: the writer had not started record `i + RECORDS`, which replaces record `i`.

use crate::record::Record;
use crate::sync::{AtomicU64, Ordering, fence};

/// Records in a ring, a power of two. Chosen by us: 512 KiB, of which the system allocates the used
/// part; the last 160 ms of a thread that records 100 thousand events per second.
#[cfg(not(apus_trace_loom))]
pub(crate) const RECORDS: usize = 16_384;
#[cfg(apus_trace_loom)]
pub(crate) const RECORDS: usize = 2;

/// Words of a record.
const WORDS: usize = 4;

/// The records of one thread at a time.
#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
    /// Records written since the ring was created.
    written: AtomicU64,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self { words: crate::sync::zeroed(RECORDS * WORDS), written: AtomicU64::new(0) }
    }

    /// Appends a record. Only the ring's thread may call this: two writers would write into the
    /// same slot, and a reader would read a mixture of both records.
    #[inline]
    pub(crate) fn push(&self, record: Record) {
        let written = self.written.load(Ordering::Relaxed);
        // TRACERING-1: no word of this record before `written` of the last one.
        fence(Ordering::Release);
        let at = (written as usize % RECORDS) * WORDS;
        if let Some(slot) = self.words.get(at..at + WORDS) {
            for (word, value) in slot.iter().zip(record.to_words()) {
                word.store(value, Ordering::Relaxed);
            }
        }
        self.written.store(written + 1, Ordering::Release);
    }

    /// Returns the number of records written since the ring was created.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Returns the records that are still in the ring, the oldest first, and the number of the
    /// first one.
    pub(crate) fn read(&self) -> (u64, Vec<Record>) {
        let end = self.written();
        let start = end.saturating_sub(RECORDS as u64);
        let record = |number: u64| {
            let at = (number as usize % RECORDS) * WORDS;
            let word = |i: usize| self.words[at + i].load(Ordering::Relaxed);
            Record::from_words([word(0), word(1), word(2), word(3)])
        };
        let mut records: Vec<Record> = (start..end).map(record).collect();
        // TRACERING-2: no word is read after this.
        fence(Ordering::Acquire);
        let now = self.written.load(Ordering::Relaxed);
        let first = (now + 1).saturating_sub(RECORDS as u64).max(start);
        records.drain(..((first - start) as usize).min(records.len()));
        (first, records)
    }
}

#[cfg(all(test, not(apus_trace_loom)))]
mod tests {
    use super::*;
    use crate::event::Event;
    use std::sync::atomic::AtomicBool;

    fn record(number: u64) -> Record {
        Record::of_thread(number, Event::Look, number as u32, !number)
    }

    #[test]
    fn the_newest_records_are_retained() {
        let ring = Ring::new();
        assert_eq!(ring.read(), (0, Vec::new()));
        for number in 0..10 {
            ring.push(record(number));
        }
        assert_eq!(ring.read(), (0, (0..10).map(record).collect()));
        let end = 3 * RECORDS as u64 + 5;
        for number in 10..end {
            ring.push(record(number));
        }
        let (first, records) = ring.read();
        // One less than the capacity: the next record might be about to be written.
        assert_eq!(first, end - RECORDS as u64 + 1);
        assert_eq!(records, (first..end).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn records_read_during_writes_are_whole_and_in_order() {
        let ring = Ring::new();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..20 * RECORDS as u64 {
                    ring.push(record(number));
                }
                done.store(true, Ordering::Release);
            });
            let mut over = false;
            while !over {
                over = done.load(Ordering::Acquire);
                let (first, records) = ring.read();
                for (i, read) in records.iter().enumerate() {
                    assert_eq!(*read, record(first + i as u64));
                }
            }
        });
        assert_eq!(ring.written(), 20 * RECORDS as u64);
    }
}

#[cfg(all(test, apus_trace_loom))]
mod model {
    use super::*;
    use crate::event::Event;
    use loom::sync::Arc;

    #[test]
    fn a_reader_keeps_no_torn_record() {
        loom::model(|| {
            let ring = Arc::new(Ring::new());
            let reader = ring.clone();
            // With the roles reversed, loom, which remembers one access to each atomic, would find
            // no interleavings.
            let thread = loom::thread::spawn(move || {
                let (first, records) = reader.read();
                for (i, read) in records.iter().enumerate() {
                    let number = first + i as u64;
                    assert_eq!((read.ticks, u64::from(read.a), read.b), (number, number, number));
                }
            });
            for number in 0..3 {
                ring.push(Record::of_thread(number, Event::Look, number as u32, number));
            }
            thread.join().unwrap();
            assert_eq!(ring.written(), 3);
        });
    }
}
