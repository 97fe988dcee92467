//! Packet headers of an attacker.

use apus_wire::{
    Body, Dialect, Features, Flags, Header, HeaderBuffer, MAX_HEADER_LEN, Packet, SenderId,
    UdpFields,
};

/// Returns the header fields of a packet without a session.
pub(super) const fn no_session(incarnation: u64) -> UdpFields {
    let low_water = UdpFields::LOW_WATER_UNKNOWN;
    UdpFields { flags: Flags::NONE, incarnation, low_water, features: Features::OURS }
}

/// Returns the header fields that take the session which `packet` offers, if it offers one.
pub(super) fn taking_session(packet: &Packet<'_>, incarnation: u32) -> Option<UdpFields> {
    let offer = packet.header.udp().filter(|fields| fields.flags.contains(Flags::CONFIRM))?;
    let flags = Flags::SESSION.with(Flags::CONFIRM);
    Some(UdpFields { flags, low_water: incarnation, ..*offer })
}

/// Returns the header fields of packets in a session that was taken with `fields`.
pub(super) const fn in_session(fields: UdpFields) -> UdpFields {
    UdpFields { flags: Flags::SESSION, low_water: UdpFields::LOW_WATER_UNKNOWN, ..fields }
}

/// Replaces `packet` by the header of a packet between two ports.
pub(super) fn write_header(
    packet: &mut Vec<u8>,
    (from, to): (u16, u16),
    id: SenderId,
    fields: UdpFields,
    body: Body<'_>,
) {
    let header = Header::new(body.kind(), from, to, id, Dialect::Udp(fields));
    let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
    let length = Packet { header, body }.emit_header(&mut buffer);
    packet.clear();
    packet.extend_from_slice(&buffer[..length]);
}
