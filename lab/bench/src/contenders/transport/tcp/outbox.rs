//! Send queue of a connection.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::AsFd;
use std::rc::Rc;

use rustix::io::{Errno, IoSlice};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::contenders::baseline::stream::buffer_pool::BufferPool;

/// Bytes that wait to be sent, in pieces so that payload need not be copied.
///
/// # Invariants
///
/// - **TCPOUTBOX-1**: No piece is empty.
pub(super) struct Outbox {
    pieces: VecDeque<Piece>,
    /// Pool that receives the buffers of whole messages.
    pool: BufferPool,
}

/// A part of a buffer.
struct Piece {
    buffer: Buffer,
    range: Range<usize>,
}

enum Buffer {
    /// Copies of short messages; more may be appended.
    Short(Vec<u8>),
    /// One message in a separate buffer.
    Whole(Vec<u8>),
    /// A buffer that several messages share.
    Shared(Rc<[u8]>),
}

impl Outbox {
    /// Maximum bytes of short messages collected in one piece.
    const SHORT: usize = 16 << 10;

    /// Maximum pieces per system call.
    const PIECES: usize = 16;

    /// Returns an empty queue. Buffers of whole messages are returned to `pool` once they are sent.
    pub(super) fn new(pool: BufferPool) -> Self {
        Self { pieces: VecDeque::new(), pool }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends a copy of `bytes`.
    pub(super) fn push_copy(&mut self, bytes: &[u8]) {
        if let Some(Piece { buffer: Buffer::Short(short), range }) = self.pieces.back_mut()
            && range.end < Self::SHORT
        {
            short.extend_from_slice(bytes);
            range.end = short.len();
            return;
        }
        self.push(Buffer::Short(bytes.to_vec()), 0..bytes.len());
    }

    /// Appends the first `length` bytes of `whole`.
    pub(super) fn push_whole(&mut self, whole: Vec<u8>, length: usize) {
        self.push(Buffer::Whole(whole), 0..length);
    }

    /// Appends the first `length` bytes of `shared`.
    pub(super) fn push_shared(&mut self, shared: Rc<[u8]>, length: usize) {
        self.push(Buffer::Shared(shared), 0..length);
    }

    fn push(&mut self, buffer: Buffer, range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push_back(Piece { buffer, range });
        }
    }

    /// Sends up to `most` bytes in one call, as far as the connection accepts them.
    pub(super) fn send(&mut self, stream: impl AsFd, most: usize) -> Result<(), Errno> {
        let mut slices = [IoSlice::new(&[]); Self::PIECES];
        let mut used = 0;
        let mut room = most;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            let bytes = piece.bytes();
            *slice = IoSlice::new(&bytes[..bytes.len().min(room)]);
            room -= slice.len();
            used += 1;
            if room == 0 {
                break;
            }
        }
        let no_control = &mut SendAncillaryBuffer::default();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(stream, &slices[..used], no_control, flags) {
            Ok(count) => self.advance(count),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Removes `count` bytes that have been sent.
    fn advance(&mut self, mut count: usize) {
        while count > 0 {
            let piece = self.pieces.front_mut().expect("nothing is sent that was not here");
            let part = count.min(piece.range.len());
            piece.range.start += part;
            count -= part;
            if piece.range.is_empty() {
                let piece = self.pieces.pop_front().expect("the one above");
                if let Buffer::Whole(memory) = piece.buffer {
                    self.pool.give_back(memory);
                }
            }
        }
    }
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        let buffer = match &self.buffer {
            Buffer::Short(bytes) | Buffer::Whole(bytes) => bytes,
            Buffer::Shared(bytes) => &bytes[..],
        };
        &buffer[self.range.clone()]
    }
}
