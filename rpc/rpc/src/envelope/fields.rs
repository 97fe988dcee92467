//! The fields of envelopes: reading and writing integers, names and metadata.

use super::error::EnvelopeError;
use super::layout::{FIXED_LEN, MAGIC};
use crate::byte_str::ByteStr;
use crate::metadata::Metadata;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Reads an envelope from its start.
pub(super) struct Fields {
    kind: u8,
    flags: u8,
    small: u8,
    number: u32,
    left: Bytes,
}

impl Fields {
    /// Reads the fixed part: magic, kind, flags, and five bytes that depend on the kind.
    pub(super) fn new(mut message: Bytes) -> Result<Self, EnvelopeError> {
        if message.first().is_some_and(|first| *first != MAGIC) {
            return Err(EnvelopeError::Magic);
        }
        if message.len() < FIXED_LEN {
            return Err(EnvelopeError::Short);
        }
        message.advance(1);
        let (kind, flags, small) = (message.get_u8(), message.get_u8(), message.get_u8());
        let number = message.get_u32_le();
        Ok(Self { kind, flags, small, number, left: message })
    }

    pub(super) const fn kind(&self) -> u8 {
        self.kind
    }

    /// Returns the flags, if all of them are in `known`.
    pub(super) const fn flags(&self, known: u8) -> Result<u8, EnvelopeError> {
        match self.flags & !known {
            0 => Ok(self.flags),
            unknown => Err(EnvelopeError::Flags(unknown)),
        }
    }

    pub(super) const fn small(&self) -> u8 {
        self.small
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn take(&mut self, length: usize) -> Result<Bytes, EnvelopeError> {
        if self.left.len() < length {
            return Err(EnvelopeError::Short);
        }
        Ok(self.left.split_to(length))
    }

    pub(super) fn u8(&mut self) -> Result<u8, EnvelopeError> {
        Ok(self.take(1)?.get_u8())
    }

    pub(super) fn u16(&mut self) -> Result<u16, EnvelopeError> {
        Ok(self.take(2)?.get_u16_le())
    }

    pub(super) fn u64(&mut self) -> Result<u64, EnvelopeError> {
        if self.left.len() < 8 {
            return Err(EnvelopeError::Short);
        }
        Ok(self.left.get_u64_le())
    }

    /// Reads metadata: two bytes of length, then name and value for each entry.
    pub(super) fn metadata(&mut self) -> Result<Metadata, EnvelopeError> {
        let length = usize::from(self.u16()?);
        let section = self.take(length)?;
        let mut inner = Self { left: section, ..Self::empty() };
        let mut metadata = Metadata::new();
        while !inner.left.is_empty() {
            let (name, value) = inner.entry().map_err(|_| EnvelopeError::Metadata)?;
            metadata.append(name, value).map_err(|_| EnvelopeError::Metadata)?;
        }
        Ok(metadata)
    }

    fn entry(&mut self) -> Result<(ByteStr, Bytes), EnvelopeError> {
        let length = usize::from(self.u8()?);
        let name = ByteStr::from_utf8(self.take(length)?).map_err(|_| EnvelopeError::Metadata)?;
        let length = usize::from(self.u16()?);
        Ok((name, self.take(length)?))
    }

    /// Returns the bytes after the envelope.
    pub(super) fn rest(self) -> Bytes {
        self.left
    }

    const fn empty() -> Self {
        Self { kind: 0, flags: 0, small: 0, number: 0, left: Bytes::new() }
    }
}

/// Writes the fixed part of an envelope.
pub(super) fn put_fixed(buffer: &mut BytesMut, kind: u8, flags: u8, small: u8, number: u32) {
    buffer.put_slice(&[MAGIC, kind, flags, small]);
    buffer.put_u32_le(number);
}

/// Returns the encoded length of metadata, including the length field; 0 if it is empty.
pub(super) const fn metadata_len(metadata: &Metadata) -> usize {
    if metadata.is_empty() { 0 } else { 2 + metadata.encoded_len() }
}

/// Writes non-empty metadata. [`Metadata::MAX_ENCODED`] fits into the length field.
pub(super) fn put_metadata(buffer: &mut BytesMut, metadata: &Metadata) {
    if metadata.is_empty() {
        return;
    }
    buffer.put_u16_le(metadata.encoded_len() as u16);
    for (name, value) in metadata.iter() {
        buffer.put_u8(name.len() as u8);
        buffer.put_slice(name.as_bytes());
        buffer.put_u16_le(value.len() as u16);
        buffer.put_slice(value);
    }
}
