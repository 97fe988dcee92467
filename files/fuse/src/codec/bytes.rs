//! The bytes of a request, consumed from the front.

use super::error::ParseError;
use super::layout::structure::Plain;
use super::name::is_component;

/// The part of a request that is not parsed yet.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Starts with all of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Takes a structure.
    #[inline]
    pub(crate) fn take<T: Plain>(&mut self) -> Result<T, ParseError> {
        Ok(T::read(self.take_slice(size_of::<T>())?))
    }

    /// Takes `length` bytes.
    #[inline]
    pub(crate) fn take_slice(&mut self, length: usize) -> Result<&'a [u8], ParseError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ParseError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes a text that ends with NUL and is not empty, without the NUL.
    pub(crate) fn take_text(&mut self) -> Result<&'a [u8], ParseError> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(ParseError::Unterminated)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        if text.is_empty() { Err(ParseError::Empty) } else { Ok(text) }
    }

    /// Takes the name of an entry.
    pub(crate) fn take_name(&mut self) -> Result<&'a [u8], ParseError> {
        let name = self.take_text().map_err(|error| match error {
            ParseError::Empty => ParseError::Name,
            other => other,
        })?;
        if is_component(name) { Ok(name) } else { Err(ParseError::Name) }
    }

    /// Returns the remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}
