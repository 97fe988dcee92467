//! The packets that the core gives to the driver.

use crate::message::{Cut, Payload, PayloadPieces};
use crate::peer::Address;
use apus_wire::{Data, MAX_HEADER_LEN, Packet};

/// Packets to be sent to one peer: a control packet, or a burst of DATA packets of one message that
/// are equal in size, the last one excepted.
///
/// Packet `i` is header `i` followed by the `i`-th piece of `segment` bytes of the payload.
#[derive(Clone, Debug)]
pub struct Transmit<'a> {
    pub(super) to: Address,
    pub(super) priority: u8,
    pub(super) traffic_class: u8,
    pub(super) headers: &'a [u8],
    pub(super) header_len: usize,
    pub(super) coalesce: usize,
    /// Of DATA packets.
    pub(super) data: Option<(&'a Payload, Cut)>,
}

impl<'a> Transmit<'a> {
    /// Returns the receiver's address.
    #[must_use]
    pub const fn to(&self) -> Address {
        self.to
    }

    /// Returns the priority level, 0 to 7.
    #[must_use]
    pub const fn priority(&self) -> u8 {
        self.priority
    }

    /// Returns the byte for IPv4's TOS or IPv6's traffic class: the level, mapped by
    /// `priority_map`, in the top three bits (HM `homa_outgoing.c` `__homa_xmit_data`, PRIO-10).
    /// The lowest two, ECN, are 0b10 if switches may mark the packets (GRANT-19), and 0 otherwise.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        self.traffic_class
    }

    /// Returns the number of packets, at least 1.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.data.as_ref().map_or(1, |(_, cut)| cut.packets() as usize)
    }

    /// Returns the length of each packet's header in bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }

    /// Returns the payload bytes of each packet but the last one; 0 in control packets.
    #[must_use]
    #[inline]
    pub fn segment(&self) -> usize {
        self.data.as_ref().map_or(0, |(_, cut)| cut.segment as usize)
    }

    /// Returns the payload bytes of all packets.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.data.as_ref().map_or(0, |(_, cut)| cut.bytes() as usize)
    }

    /// Returns the bytes of the longest datagram that the packet may share with others to the same
    /// receiver (WIRE-29); 0 if it needs a separate datagram.
    #[must_use]
    pub const fn coalesce(&self) -> usize {
        self.coalesce
    }

    /// Returns the headers of all packets, one behind the other.
    #[must_use]
    pub const fn headers(&self) -> &'a [u8] {
        self.headers
    }

    /// Returns the payload if the application gave all of the message in one piece.
    #[must_use]
    #[inline]
    pub fn single_piece(&self) -> Option<&'a [u8]> {
        let (payload, cut) = self.data.as_ref()?;
        let [slice] = payload.slices() else { return None };
        slice.get(cut.range.start as usize..cut.range.end as usize)
    }

    /// Returns the payload of all packets, concatenated, in the application's pieces.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> PayloadPieces<'a> {
        self.data.as_ref().map_or_else(PayloadPieces::none, |(payload, cut)| {
            payload.pieces(cut.range.start as usize..cut.range.end as usize)
        })
    }
}

/// Writes the headers of the packets of a burst, starting with `first`, to the start of `out`.
/// Returns the length of one.
#[inline(always)]
pub(super) fn write_headers(out: &mut Vec<u8>, first: &Packet<'_>, cut: &Cut) -> usize {
    if out.len() < MAX_HEADER_LEN {
        out.resize(MAX_HEADER_LEN, 0);
    }
    let Some(buffer) = out.first_chunk_mut() else { unreachable!("it was made that long") };
    let len = first.emit_header(buffer);
    let packets = cut.packets();
    if packets > 1 {
        out.truncate(len);
    }
    for i in 1..packets {
        let at = out.len();
        out.extend_from_within(..len);
        Data::set_offset(&mut out[at..], cut.range.start + i * cut.segment);
        Data::clear_ack(&mut out[at..]);
    }
    len
}
