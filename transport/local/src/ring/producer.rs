//! Writing end of a ring.

use super::record::{self, HEAD, Head, RecordKind};
use crate::error::Violation;
use crate::memory::Memory;
use crate::memory::layout::{RingLayout, SLOT};
use crate::sync::Ordering;

/// Cache lines that are written ahead: a record of 100 bytes takes two, and the 0 behind it is in a
/// third.
const WRITTEN_AHEAD: usize = 2;

/// The writing end of a ring.
pub(crate) struct Producer {
    memory: Memory,
    ring: RingLayout,
    /// Position of the next record.
    position: u64,
    /// The reader's position, as last loaded.
    head: u64,
    /// All lines from `position` to here start with a 0.
    cleared: u64,
    /// Bytes that the last record takes.
    last: usize,
}

/// Bytes of a record that are prefetched before they are written. Chosen by us: in longer records
/// the processor prefetches automatically.
const PREFETCH_BYTES: usize = 1024;

/// Bytes of payload in the first line of a record.
const FIRST_LINE: usize = SLOT - HEAD;

/// Why a record could not be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// The ring is full until the reader has read more.
    Full,
    /// The reader published an impossible position.
    Broken(Violation),
}

impl Producer {
    /// Returns the writing end of `ring`, whose words are all 0.
    pub(crate) const fn new(memory: Memory, ring: RingLayout) -> Self {
        Self { memory, ring, position: 0, head: 0, cleared: 0, last: 0 }
    }

    /// Returns the size of the ring in bytes.
    pub(crate) const fn capacity(&self) -> usize {
        self.ring.capacity
    }

    /// Returns the longest payload of a record in bytes (RING-5).
    pub(crate) const fn max_payload(&self) -> usize {
        self.ring.capacity / 2 - HEAD
    }

    /// Reserves a record with `len` bytes of payload.
    ///
    /// # Errors
    ///
    /// [`PushError`] if the ring is full, or its reader published an impossible position.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`Producer::max_payload`].
    #[inline(always)]
    pub(crate) fn reserve(&mut self, len: usize) -> Result<Slot<'_>, PushError> {
        assert!(len <= self.max_payload(), "RING-5: {len} bytes");
        let span = record::span(len);
        let at = self.offset(self.position);
        let rest = self.ring.capacity - at;
        // RING-2
        let pad = if span > rest { rest } else { 0 };
        // One more slot, for the 0 behind the record.
        let need = pad + span + SLOT;
        if need > self.free() {
            self.load_head()?;
            if need > self.free() {
                return Err(PushError::Full);
            }
        }
        let begin = if pad > 0 { 0 } else { at };
        self.prefetch(begin, self.last, span);
        let end = self.position + (pad + span) as u64;
        let pad_at = (pad > 0).then_some(at);
        // Payload may be written there, whether the record is committed or not.
        let cleared = std::mem::replace(&mut self.cleared, self.position);
        let first_line = [0; FIRST_LINE];
        Ok(Slot {
            begin,
            pad_at,
            end,
            cleared,
            first_line,
            filled: 0,
            len,
            expedited: false,
            producer: self,
        })
    }

    /// Returns whether a record with `len` bytes of payload has no room. An impossible position of
    /// the reader is reported by the next [`Producer::reserve`].
    pub(crate) fn is_full(&mut self, len: usize) -> bool {
        matches!(self.reserve(len), Err(PushError::Full))
    }

    /// Returns whether everything before `position` has been read.
    ///
    /// # Errors
    ///
    /// [`Violation`] if the reader published an impossible position.
    pub(crate) fn is_read(&mut self, position: u64) -> Result<bool, Violation> {
        if self.head < position {
            match self.load_head() {
                Ok(()) | Err(PushError::Full) => {}
                Err(PushError::Broken(violation)) => return Err(violation),
            }
        }
        Ok(self.head >= position)
    }

    /// Prefetches the lines of a record as long as the last one, which is about to be written.
    /// Makes no statement about their contents.
    #[inline]
    pub(crate) fn prefetch_next(&self) {
        self.prefetch(self.offset(self.position), 0, self.last);
    }

    /// Prefetches for writing the lines of the record at `begin`, from byte `after` to byte `span`.
    /// Leaves out the first line, which the reader polls: it would take the line back before the
    /// record is visible.
    #[inline]
    fn prefetch(&self, begin: usize, after: usize, span: usize) {
        let rest = self.ring.capacity - begin;
        for line in (after.max(SLOT)..span.min(PREFETCH_BYTES).min(rest)).step_by(SLOT) {
            self.memory.prefetch(self.ring.data + begin + line);
        }
    }

    /// Returns the position of the next record: all pushed records are before it.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Loads the reader's position (RING-3), once (RING-4).
    fn load_head(&mut self) -> Result<(), PushError> {
        let head = self.memory.word(self.ring.head).load(Ordering::Acquire);
        // The reader moves from record to record, neither back nor beyond the written records.
        if head < self.head || head > self.position || !head.is_multiple_of(SLOT as u64) {
            return Err(PushError::Broken(Violation::Head));
        }
        self.head = head;
        Ok(())
    }

    const fn free(&self) -> usize {
        self.ring.capacity - (self.position - self.head) as usize
    }

    const fn offset(&self, position: u64) -> usize {
        position as usize & (self.ring.capacity - 1)
    }

    #[inline]
    fn store(&self, offset: usize, word: u64, order: Ordering) {
        self.memory.word(self.ring.data + offset).store(word, order);
    }
}

/// A reserved record. Dropping it before [`Slot::commit`] leaves no trace in the ring.
#[must_use = "a record becomes visible with `commit`"]
pub(crate) struct Slot<'a> {
    producer: &'a mut Producer,
    /// Offset of the record in the ring.
    begin: usize,
    /// Offset of the padding, if the record needs padding before it.
    pad_at: Option<usize>,
    /// Position behind the record.
    end: u64,
    /// All lines behind the record, up to this position, start with a 0.
    cleared: u64,
    /// Payload of the first line, which is written last. While the other lines come from the
    /// reader's cache, the reader would take the first one back again and again.
    first_line: [u8; FIRST_LINE],
    /// Bytes of payload written so far.
    filled: usize,
    len: usize,
    expedited: bool,
}

impl Slot<'_> {
    /// Expedites the record: the reader is likely to wait for it. Delivery is faster and costs the
    /// writer time.
    #[inline]
    pub(crate) fn expedite(&mut self) {
        self.expedited = true;
    }

    /// Appends payload.
    ///
    /// # Panics
    ///
    /// If the payload exceeds the reserved length.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len - self.filled, "more payload than reserved");
        let (near, far) = bytes.split_at(bytes.len().min(FIRST_LINE.saturating_sub(self.filled)));
        if let Ok(near) = near.try_into() {
            self.first_line = near;
        } else {
            self.first_line[self.filled.min(FIRST_LINE)..][..near.len()].copy_from_slice(near);
        }
        let to = self.producer.ring.data + self.begin + HEAD + self.filled + near.len();
        self.producer.memory.write(to, far);
        self.filled += bytes.len();
    }

    /// Makes the record visible and returns the position behind it.
    ///
    /// # Panics
    ///
    /// If the payload is shorter than reserved, or `head` has another length.
    #[inline(always)]
    pub(crate) fn commit(self, head: &Head) -> u64 {
        let Self { producer, begin, pad_at, end, cleared, first_line, filled, len, expedited } =
            self;
        assert_eq!(filled, len, "less payload than reserved");
        assert_eq!(head.len, len);
        // RING-1: no record follows yet.
        if end > cleared {
            producer.store(producer.offset(end), 0, Ordering::Relaxed);
        }
        let at = producer.ring.data + begin;
        let [first, id, third] = producer.memory.words(at);
        producer.memory.write(at + HEAD, &first_line);
        id.store(head.id, Ordering::Relaxed);
        third.store(head.third(), Ordering::Relaxed);
        first.store(head.first(), Ordering::Release);
        if let Some(at) = pad_at {
            // RING-2: the reader does not read the start of the ring before this store.
            producer.store(at, record::first(RecordKind::Pad, 0), Ordering::Release);
        }
        let span = record::span(len);
        if expedited {
            // Including the line of the 0, which the reader polls next.
            producer.memory.demote(at, (span + SLOT).min(producer.ring.capacity - begin));
        }
        producer.position = end;
        producer.last = span;
        producer.cleared = cleared.max(end);
        // The lines behind the polled one are still in the reader's cache from the previous round.
        // Writing them fetches them. This happens after the record is visible; the reader does not
        // read them before.
        if producer.free() > (WRITTEN_AHEAD + 1) * SLOT {
            for line in 1..=WRITTEN_AHEAD {
                let at = producer.offset(end + (line * SLOT) as u64);
                producer.store(at, 0, Ordering::Relaxed);
            }
            producer.cleared = end + (WRITTEN_AHEAD * SLOT) as u64;
        }
        end
    }
}
