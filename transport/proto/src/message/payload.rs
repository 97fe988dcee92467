//! The payload of an outgoing message, in the application's pieces.

use bytes::Bytes;
use std::ops::Range;

/// The bytes of an outgoing message: one or several reference-counted slices that are sent as one
/// message, without being copied together.
///
/// ```
/// use apus_proto::Payload;
/// use bytes::Bytes;
///
/// let header = Bytes::from_static(b"PUT key ");
/// let value = Bytes::from(vec![7; 1000]);
/// let payload = Payload::from_iter([header, value]);
/// assert_eq!(payload.len(), 1008);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    slices: Slices,
    len: usize,
}

/// One slice is the usual case and needs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slices {
    One(Bytes),
    Several(Vec<Bytes>),
}

impl Slices {
    fn as_slice(&self) -> &[Bytes] {
        match self {
            Self::One(slice) => std::slice::from_ref(slice),
            Self::Several(slices) => slices,
        }
    }
}

impl Default for Slices {
    fn default() -> Self {
        Self::One(Bytes::new())
    }
}

impl Payload {
    /// Returns the number of bytes in all slices.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the payload has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a slice; empty ones are left out.
    pub fn push(&mut self, slice: Bytes) {
        if slice.is_empty() {
            return;
        }
        self.len += slice.len();
        match &mut self.slices {
            Slices::One(first) if first.is_empty() => *first = slice,
            Slices::One(first) => {
                let first = std::mem::take(first);
                self.slices = Slices::Several(vec![first, slice]);
            }
            Slices::Several(slices) => slices.push(slice),
        }
    }

    /// Returns the slices, in order. None is empty, except in an empty payload.
    #[must_use]
    pub fn slices(&self) -> &[Bytes] {
        self.slices.as_slice()
    }

    /// Returns the pieces of the slices that lie in `range`, in order; none is empty.
    ///
    /// # Panics
    ///
    /// If the range lies outside of the payload.
    #[must_use]
    pub fn pieces(&self, range: Range<usize>) -> PayloadPieces<'_> {
        assert!(range.start <= range.end && range.end <= self.len, "range outside of the payload");
        PayloadPieces { slices: self.slices.as_slice(), start: range.start, end: range.end }
    }
}

/// Iterator over the pieces of a [`Payload`] that lie in a range.
#[derive(Clone, Debug)]
pub struct PayloadPieces<'a> {
    /// Remaining slices.
    slices: &'a [Bytes],
    /// The bounds of the range, counted from the first slice.
    start: usize,
    end: usize,
}

impl PayloadPieces<'_> {
    /// No pieces: of a packet without payload.
    pub(crate) const fn none() -> Self {
        Self { slices: &[], start: 0, end: 0 }
    }
}

impl<'a> Iterator for PayloadPieces<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.start < self.end {
            let (slice, rest) = self.slices.split_first()?;
            let end = self.end.min(slice.len());
            let piece = slice.get(self.start..end);
            self.slices = rest;
            self.start = self.start.saturating_sub(slice.len());
            self.end = self.end.saturating_sub(slice.len());
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                return Some(piece);
            }
        }
        None
    }
}

impl FromIterator<Bytes> for Payload {
    fn from_iter<I: IntoIterator<Item = Bytes>>(slices: I) -> Self {
        let mut payload = Self::default();
        payload.extend(slices);
        payload
    }
}

impl Extend<Bytes> for Payload {
    fn extend<I: IntoIterator<Item = Bytes>>(&mut self, slices: I) {
        for slice in slices {
            self.push(slice);
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self { len: bytes.len(), slices: Slices::One(bytes) }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes::from_static(bytes).into()
    }
}

impl<const N: usize> From<&'static [u8; N]> for Payload {
    fn from(bytes: &'static [u8; N]) -> Self {
        Bytes::from_static(bytes).into()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl<const N: usize> From<[Bytes; N]> for Payload {
    fn from(slices: [Bytes; N]) -> Self {
        slices.into_iter().collect()
    }
}

impl From<Vec<Bytes>> for Payload {
    fn from(slices: Vec<Bytes>) -> Self {
        slices.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_of_any_range_are_the_bytes_of_the_whole(
            slices in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..6),
            a in 0usize..60,
            b in 0usize..60,
        ) {
            let whole = slices.concat();
            let payload: Payload = slices.into_iter().map(Bytes::from).collect();
            prop_assert_eq!(payload.len(), whole.len());
            let (a, b) = (a.min(whole.len()), b.min(whole.len()));
            let range = a.min(b)..a.max(b);
            let pieces: Vec<&[u8]> = payload.pieces(range.clone()).collect();
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
            prop_assert_eq!(pieces.concat(), &whole[range]);
        }
    }
}
