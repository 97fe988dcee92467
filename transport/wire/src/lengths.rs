//! Lengths of headers.

/// Bytes of the common header.
pub const HEADER_LEN: usize = 28;

/// Bytes before the data in a DATA packet, common header included.
pub const DATA_HEADER_LEN: usize = HEADER_LEN + 28;

/// Bytes of a RESEND without a level.
pub(crate) const BRIEF_RESEND_LEN: usize = HEADER_LEN + 8;

/// Bytes of the longest header (ACK). Source: docs/reference/homa-module.md, *Packet types*.
pub const MAX_HEADER_LEN: usize = HEADER_LEN + 52;

/// Room for any header.
pub type HeaderBuffer = [u8; MAX_HEADER_LEN];
