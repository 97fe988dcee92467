//! How does the reader of a ring take records out of it?

use bytes::BytesMut;

use crate::error::Violation;
use crate::layout::{Place, SLOT};
use crate::memory::Memory;
use crate::record::{self, HEAD, Head, Kind, read_first};
use crate::sync::{AtomicU64, Ordering};

/// The reading end of a ring.
pub(crate) struct Consumer {
    memory: Memory,
    place: Place,
    /// Where the next record begins.
    position: u64,
}

/// A record that lies in the ring. Its head was read once, and what concerns the ring has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) head: Head,
    /// Where its payload lies in the memory.
    payload: usize,
    /// The position behind it.
    end: u64,
}

impl Consumer {
    /// The reading end of the ring at `place`, whose words are all 0.
    pub(crate) const fn new(memory: Memory, place: Place) -> Self {
        Self { memory, place, position: 0 }
    }

    /// Whether there is a record, sound or not.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.memory.word(self.next_word()).load(Ordering::Acquire) != 0
    }

    /// The next record, if there is one.
    ///
    /// # Errors
    ///
    /// [`Violation`]: what lies there is no record. The ring cannot be used any more.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<Option<Record>, Violation> {
        let at = self.offset();
        let words = self.memory.words(self.place.data + at);
        let (kind, len) = match Self::first(words[0])? {
            None => return Ok(None),
            Some((Kind::Pad, _)) => return self.peek_behind_padding(),
            Some(first) => first,
        };
        self.record(at, kind, len, words).map(Some)
    }

    /// The record at the ring's begin. There is one, since padding becomes visible after it (R2).
    #[cold]
    fn peek_behind_padding(&mut self) -> Result<Option<Record>, Violation> {
        let at = self.offset();
        if at == 0 {
            return Err(Violation::Length);
        }
        self.position += (self.place.capacity - at) as u64;
        let words = self.memory.words(self.place.data);
        match Self::first(words[0])? {
            Some((Kind::Pad, _)) | None => Err(Violation::Length),
            Some((kind, len)) => self.record(0, kind, len, words).map(Some),
        }
    }

    /// The record's first word. SYNC POINT 1; R4: read once, checked, kept.
    #[inline(always)]
    fn first(word: &AtomicU64) -> Result<Option<(Kind, usize)>, Violation> {
        match word.load(Ordering::Acquire) {
            0 => Ok(None),
            word => read_first(word).map(Some),
        }
    }

    #[inline(always)]
    fn record(
        &self,
        at: usize,
        kind: Kind,
        len: usize,
        words: [&AtomicU64; HEAD / 8],
    ) -> Result<Record, Violation> {
        let span = record::span(len);
        if span > self.place.capacity / 2 || span > self.place.capacity - at {
            return Err(Violation::Length);
        }
        let [id, third] = [words[1], words[2]].map(|word| word.load(Ordering::Relaxed));
        let (total, offset) = (third as u32, (third >> 32) as u32);
        Ok(Record {
            head: Head { kind, len, id, total, offset },
            payload: self.place.data + at + HEAD,
            end: self.position + span as u64,
        })
    }

    /// Copies the payload of `record`, which must be the last that was peeked at, behind what is in `out`.
    #[inline(always)]
    pub(crate) fn copy(&self, record: &Record, out: &mut BytesMut) {
        self.memory.append(record.payload, record.head.len, out);
    }

    /// Lets the record go: the writer may use its bytes (R3).
    #[inline(always)]
    pub(crate) fn release(&mut self, record: &Record) {
        debug_assert!(record.end > self.position);
        self.position = record.end;
        self.memory.word(self.place.head).store(self.position, Ordering::Release);
    }

    /// Where in the memory the first word of the next record lies.
    #[inline]
    pub(crate) fn next_word(&self) -> usize {
        self.place.data + self.offset()
    }

    #[inline]
    fn offset(&self) -> usize {
        self.position as usize & (self.place.capacity - 1)
    }
}

const _: () = assert!(HEAD <= SLOT, "a head lies in its first slot, and so in the ring");
