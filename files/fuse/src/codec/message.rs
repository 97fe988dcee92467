//! A message to the kernel in two parts: an encoded head, and borrowed data that is not copied.

use std::io::IoSlice;

use smallvec::SmallVec;

use super::error::EncodeError;
use super::layout::output;
use super::layout::structure::Plain;

/// Length of the longest head, which belongs to the reply to STATX.
const MAX_HEAD: usize = size_of::<output::Header>() + size_of::<output::Statx>();

/// Number of pieces up to which a message needs no allocation.
const PIECES: usize = 8;

/// A message to the kernel, to be written in one call of writev(2): the head, then the tail.
#[derive(Debug)]
pub struct Message<'a> {
    head: [u8; MAX_HEAD],
    head_length: usize,
    tail: SmallVec<[&'a [u8]; PIECES]>,
}

impl<'a> Message<'a> {
    /// Starts a message. `error` is a negative error number, 0, or the code of a notification.
    #[inline]
    pub(crate) fn new(unique: u64, error: i32) -> Self {
        let mut message = Self { head: [0; MAX_HEAD], head_length: 0, tail: SmallVec::new() };
        message.push(&output::Header { len: 0, error, unique });
        message
    }

    /// Adds a structure to the head.
    ///
    /// # Panics
    ///
    /// If the head has no room: no message has more structures than the longest head.
    #[inline]
    pub(crate) fn push<T: Plain>(&mut self, structure: &T) {
        let end = self.head_length + size_of::<T>();
        structure.write(&mut self.head[self.head_length..end]);
        self.head_length = end;
    }

    /// Adds borrowed bytes.
    #[inline]
    pub(crate) fn borrow(&mut self, bytes: &'a [u8]) {
        if !bytes.is_empty() {
            self.tail.push(bytes);
        }
    }

    /// Writes the length into the header.
    #[inline]
    pub(crate) fn finish(mut self) -> Result<Self, EncodeError> {
        let tail = self.tail.iter().map(|piece| piece.len()).sum::<usize>();
        let length = u32::try_from(self.head_length + tail).map_err(|_| EncodeError::Length)?;
        // `len` is the header's first field.
        self.head[..size_of::<u32>()].copy_from_slice(&length.to_ne_bytes());
        Ok(self)
    }

    /// Returns the pieces, to be written one after the other in one call.
    #[inline]
    pub fn pieces(&self) -> SmallVec<[IoSlice<'_>; PIECES + 1]> {
        let head = IoSlice::new(&self.head[..self.head_length]);
        std::iter::once(head).chain(self.tail.iter().map(|piece| IoSlice::new(piece))).collect()
    }

    /// Returns the whole message as bytes, for tests and for transports other than a device.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces().iter().flat_map(|piece| piece.iter().copied()).collect()
    }
}
