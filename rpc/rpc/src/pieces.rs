//! The bytes of a message, as the pieces that arrived.

use apus::Payload;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Maximum length of a payload that is copied after its envelope. A packet in one piece is cheaper
/// to send than in two, because a system call takes a limited number of pieces; for longer payloads
/// the copy costs more.
const COPIED: usize = 1_024;

/// Pieces of bytes, in order; none is empty. A single piece, the usual case, needs no allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    first: Bytes,
    more: VecDeque<Bytes>,
    len: usize,
}

impl Pieces {
    /// Returns the number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of pieces.
    pub(crate) fn count(&self) -> usize {
        usize::from(!self.first.is_empty()) + self.more.len()
    }

    /// Appends a piece, unless it is empty.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        if self.first.is_empty() {
            self.first = piece;
        } else if !piece.is_empty() {
            self.more.push_back(piece);
        }
    }

    /// Takes the first piece.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if self.first.is_empty() {
            return None;
        }
        let next = self.more.pop_front().unwrap_or_default();
        let piece = std::mem::replace(&mut self.first, next);
        self.len -= piece.len();
        Some(piece)
    }

    /// Takes up to `limit` bytes from the front.
    pub(crate) fn take_up_to(&mut self, limit: usize) -> Self {
        if self.len <= limit {
            return std::mem::take(self);
        }
        let mut taken = Self::default();
        while taken.len < limit
            && let Some(mut piece) = self.pop()
        {
            let room = limit - taken.len;
            if piece.len() > room {
                self.put_back(piece.split_off(room));
            }
            taken.push(piece);
        }
        taken
    }

    /// Puts a piece in front, unless it is empty.
    fn put_back(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.len += piece.len();
        let next = std::mem::replace(&mut self.first, piece);
        if !next.is_empty() {
            self.more.push_front(next);
        }
    }

    /// Returns the room that an envelope should reserve for a copied payload.
    pub(crate) const fn copied_len(&self) -> usize {
        if self.len <= COPIED { self.len } else { 0 }
    }

    /// Returns the message: the envelope and the pieces.
    pub(crate) fn behind(mut self, mut envelope: BytesMut) -> Payload {
        if self.len <= COPIED {
            while let Some(piece) = self.pop() {
                envelope.extend_from_slice(&piece);
            }
            return Payload::from(envelope.freeze());
        }
        let mut payload = Payload::from(envelope.freeze());
        while let Some(piece) = self.pop() {
            payload.push(piece);
        }
        payload
    }
}

impl From<Bytes> for Pieces {
    fn from(piece: Bytes) -> Self {
        let mut pieces = Self::default();
        pieces.push(piece);
        pieces
    }
}

impl Extend<Bytes> for Pieces {
    fn extend<I: IntoIterator<Item = Bytes>>(&mut self, pieces: I) {
        pieces.into_iter().for_each(|piece| self.push(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_in_order_and_split_at_the_limit() {
        let content: Vec<u8> = (0..100).collect();
        for limit in [1, 7, 10, 33, 99, 100, 200] {
            let mut pieces = Pieces::default();
            content.chunks(10).for_each(|chunk| pieces.push(Bytes::copy_from_slice(chunk)));
            let mut seen = Vec::new();
            while pieces.len() > 0 {
                let mut taken = pieces.take_up_to(limit);
                assert!((1..=limit).contains(&taken.len()));
                while let Some(piece) = taken.pop() {
                    seen.extend_from_slice(&piece);
                }
            }
            assert_eq!(seen, content);
        }
    }
}
