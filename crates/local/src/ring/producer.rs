//! How does the writer of a ring put records into it?

use crate::error::Violation;
use crate::layout::{Place, SLOT};
use crate::memory::Memory;
use crate::record::{self, HEAD, Head, Kind};
use crate::sync::Ordering;

/// Cache lines that are written ahead: a record of 100 bytes has two, and behind it there is a 0 in a third.
const WRITTEN_AHEAD: usize = 2;

/// The writing end of a ring.
pub(crate) struct Producer {
    memory: Memory,
    place: Place,
    /// Where the next record begins.
    position: u64,
    /// How far the reader is, as last seen.
    head: u64,
    /// From `position` to here all lines begin with a 0.
    cleared: u64,
    /// Bytes that the last record takes.
    last: usize,
}

/// Bytes of a record that are fetched before they are written. Ours: of longer ones the processor does it by itself.
const FETCHED: usize = 1024;

/// Bytes of payload that lie in a record's first line.
const NEAR: usize = SLOT - HEAD;

/// Why there is no place for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// The reader has to read first.
    Full,
    Broken(Violation),
}

impl Producer {
    /// The writing end of the ring at `place`, whose words are all 0.
    pub(crate) const fn new(memory: Memory, place: Place) -> Self {
        Self { memory, place, position: 0, head: 0, cleared: 0, last: 0 }
    }

    /// Bytes of the ring.
    pub(crate) const fn capacity(&self) -> usize {
        self.place.capacity
    }

    /// The longest payload of a record: R5.
    pub(crate) const fn max_payload(&self) -> usize {
        self.place.capacity / 2 - HEAD
    }

    /// A place for a record with `len` bytes of payload.
    ///
    /// # Errors
    ///
    /// [`PushError`]: the ring is full, or its reader claims what cannot be.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`Producer::max_payload`]: the caller's mistake.
    #[inline]
    pub(crate) fn reserve(&mut self, len: usize) -> Result<Slot<'_>, PushError> {
        assert!(len <= self.max_payload(), "R5: {len} bytes");
        let span = record::span(len);
        let at = self.offset(self.position);
        let rest = self.place.capacity - at;
        // R2
        let pad = if span > rest { rest } else { 0 };
        // One slot more, for the 0 behind it.
        let need = pad + span + SLOT;
        if need > self.free() {
            self.look()?;
            if need > self.free() {
                return Err(PushError::Full);
            }
        }
        let begin = if pad > 0 { 0 } else { at };
        self.fetch(begin, self.last, span);
        let end = self.position + (pad + span) as u64;
        let pad_at = (pad > 0).then_some(at);
        // What is put may lie there, whether it is committed or not.
        let cleared = std::mem::replace(&mut self.cleared, self.position);
        let near = [0; NEAR];
        Ok(Slot {
            begin,
            pad_at,
            end,
            cleared,
            near,
            filled: 0,
            len,
            awaited: false,
            producer: self,
        })
    }

    /// Whether there is no place for a record with `len` bytes of payload. A reader that claims what cannot be
    /// is found out by [`Producer::reserve`].
    pub(crate) fn is_full(&mut self, len: usize) -> bool {
        matches!(self.reserve(len), Err(PushError::Full))
    }

    /// Whether everything before `position` has been read.
    ///
    /// # Errors
    ///
    /// [`Violation`]: the reader claims what cannot be.
    pub(crate) fn is_read(&mut self, position: u64) -> Result<bool, Violation> {
        if self.head < position {
            match self.look() {
                Ok(()) | Err(PushError::Full) => {}
                Err(PushError::Broken(violation)) => return Err(violation),
            }
        }
        Ok(self.head >= position)
    }

    /// Expects a record as long as the last one, which is about to be put: its lines are fetched meanwhile. Says
    /// nothing of what is in them.
    #[inline]
    pub(crate) fn expect(&self) {
        self.fetch(self.offset(self.position), 0, self.last);
    }

    /// Fetches lines of a record at `begin`, for writing: from `after` bytes of it up to `span`. Not the first, at which
    /// the reader looks: it would only take it back before the record is there.
    #[inline]
    fn fetch(&self, begin: usize, after: usize, span: usize) {
        let rest = self.place.capacity - begin;
        for line in (after.max(SLOT)..span.min(FETCHED).min(rest)).step_by(SLOT) {
            self.memory.fetch(self.place.data + begin + line);
        }
    }

    /// Where the next record will begin: all that was pushed lies before.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Looks how far the reader is. SYNC POINT 2; R4: read once, checked, kept.
    fn look(&mut self) -> Result<(), PushError> {
        let head = self.memory.word(self.place.head).load(Ordering::Acquire);
        // It goes neither back nor beyond what was written, from record to record.
        if head < self.head || head > self.position || !head.is_multiple_of(SLOT as u64) {
            return Err(PushError::Broken(Violation::Head));
        }
        self.head = head;
        Ok(())
    }

    const fn free(&self) -> usize {
        self.place.capacity - (self.position - self.head) as usize
    }

    const fn offset(&self, position: u64) -> usize {
        position as usize & (self.place.capacity - 1)
    }

    #[inline]
    fn store(&self, offset: usize, word: u64, order: Ordering) {
        self.memory.word(self.place.data + offset).store(word, order);
    }
}

/// A place in the ring. Dropped before [`Slot::commit`], it was never there.
#[must_use = "commit it"]
pub(crate) struct Slot<'a> {
    producer: &'a mut Producer,
    /// Where the record begins in the ring.
    begin: usize,
    /// Where padding begins, if there must be some before.
    pad_at: Option<usize>,
    /// The position behind the record.
    end: u64,
    /// Up to here all lines behind the record begin with a 0.
    cleared: u64,
    /// The payload of the first line, which is written last: while the record's other lines come from the reader's
    /// cache, the reader would take the first one back, over and over.
    near: [u8; NEAR],
    /// Bytes of payload that were put.
    filled: usize,
    len: usize,
    awaited: bool,
}

impl Slot<'_> {
    /// The reader is likely to wait for this very record: it is handed to it as fast as can be, which costs the writer
    /// time.
    #[inline]
    pub(crate) fn hurry(&mut self) {
        self.awaited = true;
    }

    /// Adds payload.
    ///
    /// # Panics
    ///
    /// If there is more than was reserved for.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len - self.filled, "more than was reserved for");
        let (near, far) = bytes.split_at(bytes.len().min(NEAR.saturating_sub(self.filled)));
        if let Ok(near) = near.try_into() {
            self.near = near;
        } else {
            self.near[self.filled.min(NEAR)..][..near.len()].copy_from_slice(near);
        }
        let to = self.producer.place.data + self.begin + HEAD + self.filled + near.len();
        self.producer.memory.write(to, far);
        self.filled += bytes.len();
    }

    /// Makes the record visible; returns the position behind it.
    ///
    /// # Panics
    ///
    /// If less was put than was reserved for, or `head` says something else.
    #[inline]
    pub(crate) fn commit(self, head: &Head) -> u64 {
        let Self { producer, begin, pad_at, end, cleared, near, filled, len, awaited } = self;
        assert_eq!(filled, len, "less than was reserved for");
        assert_eq!(head.len, len);
        // R1: nothing follows yet.
        if end > cleared {
            producer.store(producer.offset(end), 0, Ordering::Relaxed);
        }
        let at = producer.place.data + begin;
        let [first, id, third] = producer.memory.words(at);
        producer.memory.write(at + HEAD, &near);
        id.store(head.id, Ordering::Relaxed);
        third.store(head.third(), Ordering::Relaxed);
        first.store(head.first(), Ordering::Release);
        if let Some(at) = pad_at {
            // R2: nobody looks at the ring's begin before this.
            producer.store(at, record::first(Kind::Pad, 0), Ordering::Release);
        }
        let span = record::span(len);
        if awaited {
            // With the line of the 0, at which the reader looks next.
            producer.memory.offer(at, (span + SLOT).min(producer.place.capacity - begin));
        }
        producer.position = end;
        producer.last = span;
        producer.cleared = cleared.max(end);
        // The lines behind the one that the reader looks at are in its cache still, from the last time round. They
        // are written, and so fetched, after the record is visible. Nobody reads them before.
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
