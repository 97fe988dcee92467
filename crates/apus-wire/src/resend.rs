//! How does a receiver ask for bytes again?

use crate::bytes::{read_u32, write_u32};
use crate::error::ParseError;
use crate::grant::parse_priority;

/// `length` of a RESEND that asks for all that has been sent (-1 on the wire).
///
/// Source: reference 1.1; the kernel uses it since June 2025, before that it wrote 0.
pub const EVERYTHING: u32 = u32::MAX;

/// The body of a RESEND packet (rows P-12, P-13, `WIRE-12`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    /// First byte that is missing.
    pub offset: u32,
    /// Number of bytes that are missing, or [`EVERYTHING`]. Untrusted: the range may lie outside of
    /// the message.
    pub length: u32,
    /// Level that the retransmission shall carry, 0 to 7.
    pub priority: u8,
}

impl Resend {
    /// Asks for all bytes that have been sent.
    #[must_use]
    pub const fn everything(priority: u8) -> Self {
        Self { offset: 0, length: EVERYTHING, priority }
    }

    /// Just past the last byte asked for; never overflows.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.offset.saturating_add(self.length)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Ok(Self {
            offset: read_u32(bytes, 28),
            length: read_u32(bytes, 32),
            priority: parse_priority(bytes[36])?,
        })
    }

    pub(crate) fn emit(&self, out: &mut [u8]) {
        write_u32(out, 28, self.offset);
        write_u32(out, 32, self.length);
        out[36] = self.priority;
    }
}
