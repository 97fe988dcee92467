//! What does the core hand to the driver?

use super::ControlPacket;
use crate::message::{Cut, Payload, Pieces};
use crate::peer::Address;
use apus_wire::{Data, HeaderBuffer, MAX_HEADER_LEN};

/// Packets to be sent to one peer: a control packet, or a burst of DATA packets of one message that
/// are equal in size, the last one excepted.
///
/// Packet `i` is header `i` followed by the `i`-th piece of `segment` bytes of the payload.
#[derive(Debug)]
pub struct Transmit<'a> {
    to: Address,
    priority: u8,
    traffic_class: u8,
    header: HeaderBuffer,
    header_len: usize,
    data: Option<(&'a Payload, Cut)>,
}

impl<'a> Transmit<'a> {
    pub(crate) fn control(packet: &ControlPacket, priority: u8, traffic_class: u8) -> Self {
        let mut header = [0; MAX_HEADER_LEN];
        let bytes = packet.bytes();
        header[..bytes.len()].copy_from_slice(bytes);
        Self { to: packet.to, priority, traffic_class, header, header_len: bytes.len(), data: None }
    }

    /// A burst of DATA packets whose first header is `header`.
    pub(crate) const fn data(
        to: Address,
        priority: u8,
        traffic_class: u8,
        header: HeaderBuffer,
        header_len: usize,
        data: (&'a Payload, Cut),
    ) -> Self {
        Self { to, priority, traffic_class, header, header_len, data: Some(data) }
    }

    /// Where to.
    #[must_use]
    pub const fn to(&self) -> Address {
        self.to
    }

    /// Priority level, 0 to 7.
    #[must_use]
    pub const fn priority(&self) -> u8 {
        self.priority
    }

    /// The byte for IPv4's TOS or IPv6's traffic class: the level, mapped by `priority_map`, in the
    /// top three bits (row P-25, PRIO-10).
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        self.traffic_class
    }

    /// Number of packets, at least 1.
    #[must_use]
    pub fn packets(&self) -> usize {
        self.data.as_ref().map_or(1, |(_, cut)| cut.packets() as usize)
    }

    /// Bytes of each packet's header.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }

    /// Payload bytes of each packet but the last one; 0 in control packets.
    #[must_use]
    pub fn segment(&self) -> usize {
        self.data.as_ref().map_or(0, |(_, cut)| cut.segment as usize)
    }

    /// Payload bytes of all packets.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.data.as_ref().map_or(0, |(_, cut)| cut.bytes() as usize)
    }

    /// Appends the headers of all packets to `out`, one behind the other.
    pub fn write_headers(&self, out: &mut Vec<u8>) {
        let header = &self.header[..self.header_len];
        out.extend_from_slice(header);
        let Some((_, cut)) = &self.data else { return };
        for i in 1..cut.packets() {
            let at = out.len();
            out.extend_from_slice(header);
            Data::set_offset(&mut out[at..], cut.range.start + i * cut.segment);
            Data::clear_ack(&mut out[at..]);
        }
    }

    /// The payload of all packets, one behind the other, in the pieces in which the application gave
    /// it.
    #[must_use]
    pub fn payload(&self) -> Pieces<'a> {
        self.data.as_ref().map_or_else(Pieces::none, |(payload, cut)| {
            payload.pieces(cut.range.start as usize..cut.range.end as usize)
        })
    }
}
