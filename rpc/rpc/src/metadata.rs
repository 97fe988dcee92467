//! Metadata: named values beside a request, a response, or the end of a stream.

use crate::byte_str::ByteStr;
use bytes::Bytes;

/// Named values in the order in which they were added; a name may occur several times.
///
/// Names have 1 to 255 bytes of lower-case letters, digits, `-`, `_` and `.`, as in HTTP/2. Values are bytes. All of it
/// together takes at most [`Metadata::MAX_ENCODED`] bytes: what is larger belongs into the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    entries: Vec<(ByteStr, Bytes)>,
    encoded: usize,
}

/// Why a value was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The name is empty or too long, or has other characters than `a-z 0-9 - _ .`.
    #[error("a name of metadata has 1 to 255 of the characters a-z, 0-9, '-', '_' and '.'")]
    Name,
    /// There would be more than [`Metadata::MAX_ENCODED`] bytes.
    #[error(
        "metadata takes at most {} bytes with its names; send large values in the message",
        Metadata::MAX_ENCODED
    )]
    TooLarge,
}

impl Metadata {
    /// Bytes that all names and values may take on the wire, three more for each value included: 32,768. Chosen by us:
    /// twice what common gRPC servers accept, and half of what the length field can say.
    pub const MAX_ENCODED: usize = 32_768;

    /// Bytes that a value takes on the wire in addition to its name and its own bytes.
    pub(crate) const ENTRY_OVERHEAD: usize = 3;

    /// Returns metadata without values.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), encoded: 0 }
    }

    /// Adds a value; earlier values with this name stay.
    ///
    /// # Errors
    ///
    /// [`MetadataError`]; nothing has changed.
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

    /// Returns whether there is no value.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of all names and values on the wire.
    pub(crate) const fn encoded_len(&self) -> usize {
        self.encoded
    }
}

/// Returns whether `name` may name a value.
fn is_name(name: &[u8]) -> bool {
    let allowed = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    (1..=255).contains(&name.len()) && name.iter().all(allowed)
}
