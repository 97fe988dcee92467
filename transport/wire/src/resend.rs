//! RESEND: a receiver requests bytes again.

use crate::bytes::{read_u32, write_u32};
use crate::error::ParseError;
use crate::grant::parse_priority;
use crate::kind::Kind;
use crate::lengths::BRIEF_RESEND_LEN;

/// `length` of a RESEND for all that has been sent (-1 on the wire).
///
/// Source: docs/reference/homa-module.md, *Packet types*; the kernel uses it since June 2025.
/// Before that it wrote 0, which is read as this (`WIRE-12`).
pub const EVERYTHING: u32 = u32::MAX;

/// The body of a RESEND packet (HM `homa_incoming.c` `homa_request_retrans` and `homa_resend_pkt`,
/// `WIRE-12`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    /// First byte that is missing.
    pub offset: u32,
    /// Number of bytes that are missing, or [`EVERYTHING`]. Untrusted: the range may lie outside of
    /// the message.
    pub length: u32,
    /// Level of the retransmission, 0 to 7; 0 if it is brief.
    pub priority: u8,
    /// Whether the packet ends before the level: 36 bytes, as the stripped module of the upstream
    /// kernel writes it. Kernel profile only (`WIRE-26`).
    pub brief: bool,
}

impl Resend {
    /// Returns a RESEND for all bytes that have been sent.
    #[must_use]
    pub const fn everything(priority: u8) -> Self {
        Self { offset: 0, length: EVERYTHING, priority, brief: false }
    }

    /// Returns the offset just past the last requested byte; never overflows.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.offset.saturating_add(self.length)
    }

    /// Bytes of the packet.
    pub(crate) const fn packet_len(&self) -> usize {
        if self.brief { BRIEF_RESEND_LEN } else { Kind::Resend.header_len() }
    }

    /// Reads the body; `bytes` is the whole packet, at least as long as its profile's shortest
    /// RESEND.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (offset, length) = (read_u32(bytes, 28), read_u32(bytes, 32));
        let (priority, brief) = match bytes.get(BRIEF_RESEND_LEN) {
            Some(priority) => (parse_priority(*priority)?, false),
            None => (0, true),
        };
        Ok(Self { offset, length, priority, brief })
    }

    /// Returns whether all bytes that have been sent are requested, in today's encoding or in the
    /// older one.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.length == EVERYTHING || (self.offset == 0 && self.length == 0)
    }

    pub(crate) fn emit(&self, out: &mut [u8]) {
        write_u32(out, 28, self.offset);
        write_u32(out, 32, self.length);
        if !self.brief {
            out[BRIEF_RESEND_LEN] = self.priority;
        }
    }
}
