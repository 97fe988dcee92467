//! Names in directories.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

use crate::wire::limits::MAX_NAME;

/// A name in a directory: 1 to 255 bytes of any kind except `/` and NUL; neither `.` nor `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(Bytes);

/// Bytes that are no [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A name has at least one byte.
    #[error("the name is empty")]
    Empty,
    /// A name has at most 255 bytes.
    #[error("the name has more than 255 bytes")]
    TooLong,
    /// A name contains neither `/` nor NUL.
    #[error("the name contains a slash or a NUL byte")]
    Separator,
    /// `.` and `..` are no names: the client resolves them itself.
    #[error("`.` and `..` are no names")]
    Dots,
}

impl Name {
    /// Checks and wraps the bytes of a name.
    ///
    /// # Errors
    ///
    /// Returns the defect of the bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, NameError> {
        let bytes = bytes.into();
        match &*bytes {
            [] => Err(NameError::Empty),
            b"." | b".." => Err(NameError::Dots),
            long if long.len() > MAX_NAME => Err(NameError::TooLong),
            name if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(NameError::Separator),
            _ => Ok(Self(bytes)),
        }
    }

    /// Returns the bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?;
        Self::new(bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names() {
        assert_eq!(Name::new(&b""[..]), Err(NameError::Empty));
        assert_eq!(Name::new(&b".."[..]), Err(NameError::Dots));
        assert_eq!(Name::new(&b"a/b"[..]), Err(NameError::Separator));
        assert_eq!(Name::new(&b"a\0"[..]), Err(NameError::Separator));
        assert_eq!(Name::new(vec![b'x'; 256]), Err(NameError::TooLong));
        assert!(Name::new(vec![0xff; 255]).is_ok());
        assert!(Name::new(&b"..."[..]).is_ok());
    }
}
