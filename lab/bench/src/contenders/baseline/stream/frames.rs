//! Framing of messages on a byte stream.

use std::mem;

use super::buffer_pool::BufferPool;

/// Length of the prefix of each payload: its length, big-endian.
pub(crate) const PREFIX: usize = 4;

/// Returns a payload with its prefix.
pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("plans hold sizes that messages can have");
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

/// Receive buffer of a connection, divided into frames.
///
/// # Invariants
///
/// - **FRAMES-1**: `begin <= end <= bytes.len()`; `bytes[begin..end]` has arrived and was not
///   consumed.
/// - **FRAMES-2**: `begin` is the start of a frame.
/// - **FRAMES-3**: A frame longer than `chunk` starts at offset 0 of `bytes`, and reading stops at
///   its end, so that its buffer can be handed over without a copy.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// Maximum bytes received per call, unless the arriving frame is longer.
    chunk: usize,
    begin: usize,
    end: usize,
    /// Source of `bytes`, and destination when it is empty.
    pool: BufferPool,
}

impl Inbox {
    /// Maximum bytes received per call from a byte stream. Chosen by us: the largest segment that
    /// loopback delivers.
    const CHUNK: usize = 64 << 10;

    /// Returns an empty inbox that shares `pool` with others.
    pub(crate) const fn new(pool: BufferPool) -> Self {
        Self { bytes: Vec::new(), chunk: Self::CHUNK, begin: 0, end: 0, pool }
    }

    /// Returns an inbox for packets of at most `longest` bytes, each of them a frame. A longer
    /// packet is truncated.
    pub(crate) fn of_packets(longest: usize) -> Self {
        Self { chunk: longest.max(Self::CHUNK), ..Self::default() }
    }

    /// Returns the buffer for the next bytes; never empty.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        let frame = self.first_length().unwrap_or(PREFIX);
        let needed = frame.max(self.chunk);
        if self.bytes.is_empty() {
            self.bytes = self.pool.take();
        }
        if self.begin + needed > self.bytes.len() || (frame > self.chunk && self.begin > 0) {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            self.bytes.resize(needed.max(self.bytes.len()), 0);
        }
        &mut self.bytes[self.end..self.begin + needed]
    }

    /// Records that `count` bytes have arrived in [`Inbox::room`].
    pub(crate) fn received(&mut self, count: usize) {
        self.end += count;
        assert!(self.end <= self.bytes.len(), "FRAMES-1");
    }

    /// Takes all complete frames.
    pub(crate) fn take(&mut self) -> Frames<'_> {
        let begin = self.begin;
        let mut count = 0;
        while let Some(length) = self.first_length().filter(|&n| n <= self.end - self.begin) {
            self.begin += length;
            count += 1;
        }
        Frames { bytes: &self.bytes[begin..self.begin], count }
    }

    /// Takes a long frame together with its buffer, if the buffer contains no other data. Returns
    /// the buffer and the length of the frame in it.
    pub(crate) fn take_long(&mut self) -> Option<(Vec<u8>, usize)> {
        let length = self.first_length()?;
        if length <= self.chunk || length != self.end - self.begin {
            return None;
        }
        assert_eq!(self.begin, 0, "FRAMES-3");
        self.end = 0;
        Some((mem::take(&mut self.bytes), length))
    }

    /// Returns the buffer to the pool if it is empty.
    pub(crate) fn release(&mut self) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
            self.pool.give_back(mem::take(&mut self.bytes));
        }
    }

    /// Returns the length of the first frame with its prefix, once the prefix has arrived.
    fn first_length(&self) -> Option<usize> {
        let prefix = self.bytes[self.begin..self.end].first_chunk()?;
        Some(PREFIX + u32::from_be_bytes(*prefix) as usize)
    }
}

impl Default for Inbox {
    /// Returns an inbox with a private pool.
    fn default() -> Self {
        Self::new(BufferPool::default())
    }
}

/// Complete frames, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frames<'a> {
    /// The bytes of all frames, prefixes included.
    pub(crate) bytes: &'a [u8],
    /// Number of frames.
    pub(crate) count: usize,
}

impl<'a> Frames<'a> {
    /// Returns the bytes of payload.
    pub(crate) const fn payload(&self) -> usize {
        self.bytes.len() - self.count * PREFIX
    }

    /// Returns each frame with its prefix.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
            let (frame, behind) = rest.split_at(PREFIX + length);
            rest = behind;
            Some(frame)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives `stream` in pieces of at most `piece` bytes and returns the payloads.
    fn through(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut inbox = Inbox::default();
        let mut payloads = Vec::new();
        let mut rest = stream;
        while !rest.is_empty() {
            let room = inbox.room();
            let count = piece.min(room.len()).min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            inbox.received(count);
            let frames = inbox.take();
            let before = payloads.len();
            payloads.extend(frames.iter().map(|frame| frame[PREFIX..].to_vec()));
            assert_eq!(payloads.len() - before, frames.count);
            let bytes: usize = payloads[before..].iter().map(Vec::len).sum();
            assert_eq!(bytes, frames.payload());
        }
        payloads
    }

    #[test]
    fn frames_are_reassembled_however_the_stream_is_cut() {
        let sizes = [0, 1, 100, 3, 70_000, 5, 65_532, 65_536, 200_000, 2, 1000];
        let payloads: Vec<Vec<u8>> = sizes
            .iter()
            .zip(0u8..)
            .map(|(&size, seed)| (0..size).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect())
            .collect();
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| frame(payload)).collect();
        for piece in [1, 3, 4, 5, 1000, 65_536, 1 << 20] {
            assert!(through(&stream, piece) == payloads, "pieces of {piece} bytes");
        }
    }

    #[test]
    fn a_long_frame_is_received_up_to_its_end_only() {
        let mut inbox = Inbox::default();
        let long = frame(&[7; 100_000]);
        inbox.room()[..10].copy_from_slice(&long[..10]);
        inbox.received(10);
        assert_eq!(inbox.take().count, 0);
        assert_eq!(inbox.room().len(), long.len() - 10);
    }

    /// Receives `bytes`; they must fit into the free space.
    fn receive(inbox: &mut Inbox, bytes: &[u8]) {
        inbox.room()[..bytes.len()].copy_from_slice(bytes);
        inbox.received(bytes.len());
    }

    #[test]
    fn a_long_frame_can_be_taken_with_its_buffer() {
        let pool = BufferPool::default();
        let mut inbox = Inbox::new(pool.clone());
        let (short, long) = (frame(&[1; 10]), frame(&[7; 100_000]));
        receive(&mut inbox, &[&short[..], &long[..50]].concat());
        assert_eq!(inbox.take().bytes, short);
        assert!(inbox.take_long().is_none(), "it has not arrived");
        receive(&mut inbox, &long[50..]);
        let (memory, length) = inbox.take_long().unwrap();
        assert!(memory[..length] == long);
        assert_eq!(inbox.take().count, 0, "taken once");

        let address = memory.as_ptr();
        pool.give_back(memory);
        receive(&mut inbox, &long[..50]);
        receive(&mut inbox, &long[50..]);
        let (memory, length) = inbox.take_long().unwrap();
        assert!(memory[..length] == long);
        assert_eq!(memory.as_ptr(), address, "the buffer is reused");
    }

    #[test]
    fn a_long_frame_is_incomplete_although_as_many_bytes_have_arrived() {
        let pool = BufferPool::default();
        pool.give_back(vec![0; 300_000]);
        let mut inbox = Inbox::new(pool);
        // A partial frame stays in place while there is space behind it.
        let (short, half) = (frame(&[1; 60_000]), frame(&[2; 60_000]));
        receive(&mut inbox, &[&short[..], &half[..10]].concat());
        assert_eq!(inbox.take().count, 1);
        // The start of a long frame whose length is the number of bytes in the buffer.
        let long = frame(&vec![3; short.len() + half.len() + 10 - PREFIX]);
        receive(&mut inbox, &[&half[10..], &long[..10]].concat());
        assert_eq!(inbox.take().count, 1);
        assert!(inbox.take_long().is_none(), "ten bytes of it");
        receive(&mut inbox, &long[10..60_000]);
        receive(&mut inbox, &long[60_000..]);
        let (memory, length) = inbox.take_long().unwrap();
        assert!(memory[..length] == long);
    }

    #[test]
    fn there_is_room_for_the_longest_packet_after_any_other() {
        let mut inbox = Inbox::of_packets(200_000);
        for length in [1, 70_000, 199_996, 3] {
            assert!(inbox.room().len() >= 200_000, "its length is unknown before it is received");
            receive(&mut inbox, &frame(&vec![5; length]));
            assert_eq!(inbox.take().payload(), length);
        }
    }

    #[test]
    fn an_empty_inbox_returns_its_buffer_to_the_pool() {
        let pool = BufferPool::default();
        let (mut one, mut other) = (Inbox::new(pool.clone()), Inbox::new(pool));
        receive(&mut one, &frame(&[1; 10]));
        let address = one.take().bytes.as_ptr();
        one.release();
        assert_eq!(other.room().as_ptr(), address);
        receive(&mut other, &frame(&[2; 10])[..5]);
        other.release();
        assert_ne!(one.room().as_ptr(), address, "half a frame keeps it");
    }

    #[test]
    fn short_frames_are_not_taken_with_their_buffer() {
        let mut inbox = Inbox::default();
        receive(&mut inbox, &frame(&[1; 10]));
        assert!(inbox.take_long().is_none());
        assert_eq!(inbox.take().count, 1);
    }
}
