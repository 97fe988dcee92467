//! Reading end of a ring.

use bytes::{Bytes, BytesMut};

use super::record::{self, HEAD, Head, RecordKind, read_first};
use crate::error::Violation;
use crate::memory::Memory;
use crate::memory::layout::{RingLayout, SLOT};
use crate::sync::{AtomicU64, Ordering};

/// The reading end of a ring.
pub(crate) struct Consumer {
    memory: Memory,
    ring: RingLayout,
    /// Position of the next record.
    position: u64,
}

/// A record in the ring. Its head was read once, and the fields that concern the ring have been
/// checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingRecord {
    pub(crate) head: Head,
    /// Offset of the payload in the memory.
    payload: usize,
    /// Position behind the record.
    end: u64,
}

impl Consumer {
    /// Returns the reading end of `ring`, whose words are all 0.
    pub(crate) const fn new(memory: Memory, ring: RingLayout) -> Self {
        Self { memory, ring, position: 0 }
    }

    /// Returns whether a record is visible, valid or not.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.memory.word(self.next_word()).load(Ordering::Acquire) != 0
    }

    /// Returns the next record, if one is visible.
    ///
    /// # Errors
    ///
    /// [`Violation`] if the bytes are no valid record. The ring cannot be used any more.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Result<Option<RingRecord>, Violation> {
        let at = self.offset();
        let words = self.memory.words(self.ring.data + at);
        let (kind, len) = match Self::first(words[0])? {
            None => return Ok(None),
            Some((RecordKind::Pad, _)) => return self.peek_behind_padding(),
            Some(first) => first,
        };
        self.record(at, kind, len, words).map(Some)
    }

    /// Returns the record at the start of the ring. It is visible, since padding becomes visible
    /// after it (RING-2).
    #[cold]
    fn peek_behind_padding(&mut self) -> Result<Option<RingRecord>, Violation> {
        let at = self.offset();
        if at == 0 {
            return Err(Violation::Length);
        }
        self.position += (self.ring.capacity - at) as u64;
        let words = self.memory.words(self.ring.data);
        match Self::first(words[0])? {
            Some((RecordKind::Pad, _)) | None => Err(Violation::Length),
            Some((kind, len)) => self.record(0, kind, len, words).map(Some),
        }
    }

    /// Reads the first word of a record (RING-1), once (RING-4).
    #[inline(always)]
    fn first(word: &AtomicU64) -> Result<Option<(RecordKind, usize)>, Violation> {
        match word.load(Ordering::Acquire) {
            0 => Ok(None),
            word => read_first(word).map(Some),
        }
    }

    #[inline(always)]
    fn record(
        &self,
        at: usize,
        kind: RecordKind,
        len: usize,
        words: [&AtomicU64; HEAD / 8],
    ) -> Result<RingRecord, Violation> {
        let span = record::span(len);
        if span > self.ring.capacity / 2 || span > self.ring.capacity - at {
            return Err(Violation::Length);
        }
        let [id, third] = [words[1], words[2]].map(|word| word.load(Ordering::Relaxed));
        let (total, offset) = (third as u32, (third >> 32) as u32);
        Ok(RingRecord {
            head: Head { kind, len, id, total, offset },
            payload: self.ring.data + at + HEAD,
            end: self.position + span as u64,
        })
    }

    /// Returns the payload of `record`, which must be the last peeked record.
    #[inline(always)]
    pub(crate) fn read(&self, record: &RingRecord) -> Bytes {
        self.memory.read(record.payload, record.head.len)
    }

    /// Appends the payload of `record`, which must be the last peeked record, to `out`.
    #[inline(always)]
    pub(crate) fn copy(&self, record: &RingRecord, out: &mut BytesMut) {
        self.memory.append(record.payload, record.head.len, out);
    }

    /// Releases the record: the writer may reuse its bytes (RING-3).
    #[inline(always)]
    pub(crate) fn release(&mut self, record: &RingRecord) {
        debug_assert!(record.end > self.position);
        self.position = record.end;
        self.memory.word(self.ring.head).store(self.position, Ordering::Release);
    }

    /// Returns the offset in the memory of the first word of the next record.
    #[inline]
    pub(crate) fn next_word(&self) -> usize {
        self.ring.data + self.offset()
    }

    #[inline]
    fn offset(&self) -> usize {
        self.position as usize & (self.ring.capacity - 1)
    }
}

const _: () = assert!(HEAD <= SLOT, "a head is inside its first slot, and so inside the ring");
