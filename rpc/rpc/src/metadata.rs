//! Metadata: named values that accompany a request, a response, or the end of a stream.

use crate::byte_str::ByteStr;
use bytes::Bytes;

/// Named values in insertion order; a name may occur several times.
///
/// Names have 1 to 255 bytes of lower-case letters, digits, `-`, `_` and `.`, as in HTTP/2. Values
/// are bytes. The total is at most [`Metadata::MAX_ENCODED`] bytes; larger data belongs in the
/// message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    entries: Vec<(ByteStr, Bytes)>,
    encoded: usize,
}

/// Reason why a value was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The name is empty or too long, or has other characters than `a-z 0-9 - _ .`.
    #[error("a name of metadata has 1 to 255 of the characters a-z, 0-9, '-', '_' and '.'")]
    Name,
    /// The total would exceed [`Metadata::MAX_ENCODED`] bytes.
    #[error(
        "metadata takes at most {} bytes with its names; send large values in the message",
        Metadata::MAX_ENCODED
    )]
    TooLarge,
}

impl Metadata {
    /// Maximum bytes of all names and values on the wire, including three more per value: 32,768.
    /// Chosen by us: twice the limit of common gRPC servers, and half the range of the length
    /// field.
    pub const MAX_ENCODED: usize = 32_768;

    /// Bytes on the wire per value, in addition to its name and content.
    pub(crate) const ENTRY_OVERHEAD: usize = 3;

    /// Creates empty metadata.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), encoded: 0 }
    }

    /// Adds a value; earlier values with this name stay.
    ///
    /// # Errors
    ///
    /// [`MetadataError`]; the metadata is unchanged.
    pub fn append(
        &mut self,
        name: impl Into<ByteStr>,
        value: impl Into<Bytes>,
    ) -> Result<(), MetadataError> {
        let (name, value) = (name.into(), value.into());
        if !is_name(name.as_bytes()) {
            return Err(MetadataError::Name);
        }
        let encoded = self.encoded + Self::ENTRY_OVERHEAD + name.as_bytes().len() + value.len();
        if encoded > Self::MAX_ENCODED {
            return Err(MetadataError::TooLarge);
        }
        self.encoded = encoded;
        self.entries.push((name, value));
        Ok(())
    }

    /// Removes the last value whose name is not `kept`. Returns whether there was one.
    pub(crate) fn remove_last_except(&mut self, kept: &str) -> bool {
        let Some(last) = self.entries.iter().rposition(|(name, _)| name.as_str() != kept) else {
            return false;
        };
        let (name, value) = self.entries.remove(last);
        self.encoded -= Self::ENTRY_OVERHEAD + name.as_bytes().len() + value.len();
        true
    }

    /// Returns the first value with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns all names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of all names and values on the wire.
    pub(crate) const fn encoded_len(&self) -> usize {
        self.encoded
    }
}

/// Returns whether `name` is a valid name.
fn is_name(name: &[u8]) -> bool {
    let allowed = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    (1..=255).contains(&name.len()) && name.iter().all(allowed)
}
