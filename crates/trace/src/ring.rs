//! Where does a thread keep its records?
//!
//! In a ring of [`RECORDS`], of which each new record takes the place of the oldest. Only its own thread writes into
//! it; any other may read it at any moment, without either waiting for the other: the reader throws away what may have
//! been overwritten while it read.
//!
//! # Invariants
//!
//! - **R1** `written` is stored after the words of the record before it, and the words of the next one are stored
//!   after that. So whoever reads a word of record `n`, and then `written` (with the fences below), reads `n` at least.
//! - **R2** A reader keeps record `i` only if `written`, read afterwards, is less than `i + RECORDS`: nobody had begun
//!   to write record `i + RECORDS`, which takes its place.

use crate::record::Record;
use crate::sync::{AtomicU64, Ordering, fence};

/// Records in a ring. Ours: 512 KiB, of which the system gives what is used; the last 200 ms of a thread that does
/// 100 thousand things in a second and records them all. A power of two.
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
    /// Records written since the ring was made.
    written: AtomicU64,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self { words: crate::sync::zeroed(RECORDS * WORDS), written: AtomicU64::new(0) }
    }

    /// Adds a record. Only the ring's thread may call this: two at a time would write into the same place, and what a
    /// reader got would be of both.
    #[inline]
    pub(crate) fn push(&self, record: Record) {
        let written = self.written.load(Ordering::Relaxed);
        // R1: no word of this record before `written` of the last one.
        fence(Ordering::Release);
        let at = (written as usize % RECORDS) * WORDS;
        if let Some(place) = self.words.get(at..at + WORDS) {
            for (word, value) in place.iter().zip(record.to_words()) {
                word.store(value, Ordering::Relaxed);
            }
        }
        self.written.store(written + 1, Ordering::Release);
    }

    /// Records written since the ring was made.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Those that are still there, the oldest first, and the number of the first one.
    pub(crate) fn read(&self) -> (u64, Vec<Record>) {
        let end = self.written();
        let start = end.saturating_sub(RECORDS as u64);
        let record = |number: u64| {
            let at = (number as usize % RECORDS) * WORDS;
            let word = |i: usize| self.words[at + i].load(Ordering::Relaxed);
            Record::from_words([word(0), word(1), word(2), word(3)])
        };
        let mut records: Vec<Record> = (start..end).map(record).collect();
        // R2: no word is read after this.
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
    fn the_newest_records_are_kept() {
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
        // One less than fit: the next one might be about to be written.
        assert_eq!(first, end - RECORDS as u64 + 1);
        assert_eq!(records, (first..end).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_read_while_it_is_written_is_whole_and_in_order() {
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
    fn a_reader_keeps_no_record_of_which_it_read_half() {
        loom::model(|| {
            let ring = Arc::new(Ring::new());
            let reader = ring.clone();
            // The other way round loom, which remembers one access to each atomic, finds nothing to try.
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
