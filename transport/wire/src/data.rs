//! DATA: the fields before the message's bytes.

use crate::ack::Ack;
use crate::bytes::{read_u16, read_u32, write_u16, write_u32};
use crate::error::ParseError;
use crate::header::Header;
use crate::lengths::{DATA_HEADER_LEN, HeaderBuffer};
use crate::profile::Profile;
use crate::waiting::Waiting;

/// Bytes that a packet over UDP occupies on an Ethernet link in addition to its own: preamble,
/// frame header, checksum and gap (38), IPv4 (20) and UDP (8) headers.
pub const WIRE_OVERHEAD: u64 = 38 + 20 + 8;

/// `seg.offset` value that the kernel uses for "the offset is in `sequence`" (HM `homa_wire.h`
/// `homa_seg_hdr`).
const OFFSET_IN_SEQUENCE: u32 = u32::MAX;

/// The fields of a DATA packet after the common header.
///
/// ```text
///  28              32              36                      44      46      48  49   50   51  52
/// +---------------+---------------+-----------------------+-------+-------+---+----+----+---+--------+
/// | message length| incoming      | ack: client id        | port  | cut v.|ret|wait|lim.|pad| offset |
/// +---------------+---------------+-----------------------+-------+-------+---+----+----+---+--------+
/// ```
///
/// Source: docs/reference/homa-module.md, *Packet types*, *Sending DATA* and *Retransmitting DATA*;
/// requirement `WIRE-10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Bytes of the whole message; 0 only in the udp profile, where one packet without data is then
    /// the whole message (`WIRE-30`). The same in every packet of the message.
    pub message_length: u32,
    /// Bytes, from the start of the message, that the receiver may expect without further grants.
    pub incoming: u32,
    /// An RPC that the sender, as a client, has finished with.
    pub ack: Option<Ack>,
    /// Version of the receiver's cutoffs that the sender used; 0 before the first CUTOFFS.
    pub cutoff_version: u16,
    /// Whether this answers a RESEND.
    pub retransmit: bool,
    /// Offset in the message of the packet's first data byte. Always the real one here; see
    /// [`Data::offset_in_sequence`].
    pub offset: u32,
    /// Whether `seg.offset` is -1 on the wire and the offset is in `sequence` alone, as in the
    /// kernel's first transmissions. This implementation writes both.
    pub offset_in_sequence: bool,
    /// Whether `incoming` is 0 on the wire, as the stripped module of the upstream kernel writes
    /// it: it transmits the whole message without a GRANT (`WIRE-26`). [`Data::incoming`] is then
    /// the whole length. Never set in the udp profile.
    pub is_stripped: bool,
    /// Bytes waiting at the sender of the message when the packet has left (`WIRE-34`); not stated
    /// in the kernel profile.
    pub waiting: Waiting,
    /// In requests, the bytes of the response that may leave without a GRANT, if its client limits
    /// them (`WIRE-35`); not stated in the kernel profile.
    pub response_limit: Waiting,
}

impl Data {
    /// Returns the fields of the first packet of a message of `message_length` bytes, `incoming` of
    /// which arrive without a GRANT. All other fields are neutral.
    #[must_use]
    pub const fn first(message_length: u32, incoming: u32) -> Self {
        Self {
            message_length,
            incoming,
            ack: None,
            cutoff_version: 0,
            retransmit: false,
            offset: 0,
            offset_in_sequence: false,
            is_stripped: false,
            waiting: Waiting::UNSAID,
            response_limit: Waiting::UNSAID,
        }
    }

    /// Reads the fields; `bytes` are at least the first [`DATA_HEADER_LEN`] of a packet, which has
    /// `payload` behind these.
    #[inline(always)]
    pub(crate) fn parse(header: &Header, bytes: &[u8], payload: usize) -> Result<Self, ParseError> {
        let wire_offset = read_u32(bytes, 52);
        let offset_in_sequence = wire_offset == OFFSET_IN_SEQUENCE;
        let offset = if offset_in_sequence { header.sequence } else { wire_offset };
        let message_length = read_u32(bytes, 28);
        check(header.profile(), message_length, offset, payload)?;
        let incoming = read_u32(bytes, 32);
        let is_stripped = header.profile() == Profile::Kernel && incoming == 0;
        Ok(Self {
            message_length,
            incoming: if is_stripped { message_length } else { incoming },
            ack: Ack::parse_optional(bytes, 36),
            cutoff_version: read_u16(bytes, 46),
            retransmit: bytes[48] != 0,
            offset,
            offset_in_sequence,
            is_stripped,
            waiting: match header.profile() {
                Profile::Udp => Waiting::from_byte(bytes[49]),
                Profile::Kernel => Waiting::UNSAID,
            },
            response_limit: match header.profile() {
                Profile::Udp => Waiting::from_byte(bytes[50]),
                Profile::Kernel => Waiting::UNSAID,
            },
        })
    }

    /// Returns the length of a DATA packet that extends to the end of its message; `None` if the
    /// bytes are too few, or contradict each other.
    #[inline]
    pub(crate) fn len_to_end(bytes: &[u8]) -> Option<usize> {
        let header: &[u8; DATA_HEADER_LEN] = bytes.first_chunk()?;
        let wire_offset = read_u32(header, 52);
        let offset =
            if wire_offset == OFFSET_IN_SEQUENCE { read_u32(header, 4) } else { wire_offset };
        let missing = read_u32(header, 28).checked_sub(offset)?;
        Some(DATA_HEADER_LEN.saturating_add(missing as usize))
    }

    /// Writes the fields behind the common header, which the caller has written.
    #[inline(always)]
    pub(crate) fn emit(&self, out: &mut HeaderBuffer) {
        write_u32(out, 28, self.message_length);
        write_u32(out, 32, if self.is_stripped { 0 } else { self.incoming });
        Ack::emit_optional(self.ack, out, 36);
        write_u16(out, 46, self.cutoff_version);
        out[48] = u8::from(self.retransmit);
        out[49] = self.waiting.byte();
        out[50] = self.response_limit.byte();
        out[51] = 0;
        let wire_offset = if self.offset_in_sequence { OFFSET_IN_SEQUENCE } else { self.offset };
        write_u32(out, 52, wire_offset);
    }

    /// Moves a DATA header that was written by [`crate::Packet::emit_header`] on to another offset,
    /// in both of its places.
    ///
    /// The packets of a burst differ only in the offset (and the piggy-backed ack, see
    /// [`Data::clear_ack`]), so that the other 48 bytes need not be written again.
    ///
    /// # Panics
    ///
    /// If `header` is shorter than [`DATA_HEADER_LEN`].
    pub fn set_offset(header: &mut [u8], offset: u32) {
        write_u32(header, 4, offset);
        write_u32(header, 52, offset);
    }

    /// Removes the piggy-backed ack from a written DATA header: only the first packet of a burst
    /// carries one (HM `homa_outgoing.c` `homa_tx_data_pkt_alloc`, `WIRE-19`).
    ///
    /// # Panics
    ///
    /// If `header` is shorter than [`DATA_HEADER_LEN`].
    pub fn clear_ack(header: &mut [u8]) {
        Ack::emit_optional(None, header, 36);
    }
}

/// Invariant CODEC-2 (BAD-2).
#[inline(always)]
fn check(
    profile: Profile,
    message_length: u32,
    offset: u32,
    payload: usize,
) -> Result<(), ParseError> {
    if message_length == 0 && profile == Profile::Kernel {
        return Err(ParseError::EmptyMessage);
    }
    if payload == 0 && message_length > 0 {
        return Err(ParseError::EmptyData);
    }
    let end = u64::from(offset) + payload as u64;
    if end > u64::from(message_length) {
        return Err(ParseError::DataBeyondEnd { end, message_length });
    }
    Ok(())
}
