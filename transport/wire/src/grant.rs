//! GRANT: a receiver allows further bytes.

use crate::PRIORITIES;
use crate::bytes::{read_u32, write_u32};
use crate::error::ParseError;

/// The body of a GRANT packet (HM `homa_incoming.c` `homa_grant_pkt`, `WIRE-11`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Offset just past the last byte that may be sent. May lie beyond the message's end, which
    /// then is the limit.
    pub offset: u32,
    /// Level of the message's scheduled packets from now on, 0 to 7.
    pub priority: u8,
}

impl Grant {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Ok(Self { offset: read_u32(bytes, 28), priority: parse_priority(bytes[32])? })
    }

    pub(crate) fn emit(&self, out: &mut [u8]) {
        write_u32(out, 28, self.offset);
        out[32] = self.priority;
    }
}

/// A priority byte from the wire, 0 to 7.
pub(crate) fn parse_priority(value: u8) -> Result<u8, ParseError> {
    if usize::from(value) < PRIORITIES {
        Ok(value)
    } else {
        Err(ParseError::PriorityOutOfRange(value))
    }
}
