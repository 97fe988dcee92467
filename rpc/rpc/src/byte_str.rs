//! Text that shares the memory of its message.

use bytes::Bytes;
use std::fmt;
use std::ops::Deref;

/// UTF-8 text in reference-counted memory, such as the name of a method, without a copy out of its
/// message.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteStr(Bytes);

impl ByteStr {
    /// Returns static text.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Returns `bytes` as text.
    ///
    /// # Errors
    ///
    /// The position of the first invalid byte.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, std::str::Utf8Error> {
        std::str::from_utf8(&bytes)?;
        Ok(Self(bytes))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Checked at construction. The check is repeated instead of an unsafe block, since names
        // are short.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the bytes of the text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for ByteStr {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for ByteStr {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for ByteStr {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl fmt::Display for ByteStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for ByteStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
