//! Merged packets: finds the packet boundaries within one datagram.
//!
//! Equal-sized packets sent in one call (UDP_SEGMENT) or received in one call (UDP_GRO) appear as
//! one datagram in a capture taken on the host: always on the loopback interface, elsewhere if the
//! interface implements the offload. No field contains their size. Each packet starts with a header
//! that has the same ports, so the size is the smallest number whose multiples are all offsets of
//! such a header.
//!
//! Each segment may hold several consecutive packets (`WIRE-29`); the header of each packet
//! determines its end.

use apus_wire::{
    Features, Flags, HEADER_LEN, Kind, SEALED_VERSION, SealKind, UDP_VERSION, announced_len,
    is_sealed,
};

/// Features permitted in the low nibble of byte 12.
const FEATURES: u8 = Features::OURS.bits() as u8;
const SPRAYABLE: u8 = Features::SPRAYABLE.bits() as u8;
const SPRAYED: u8 = Features::SPRAYED.bits() as u8;
const LONG_SESSIONS: u8 = Features::LONG_SESSIONS.bits() as u8;

/// Returns whether these bytes are a valid header of the udp profile with these ports (`WIRE-2`,
/// `WIRE-4`, `WIRE-20`). Features occupy two bits; apart from the marks of `WIRE-36`, the remaining
/// bits distinguish headers from payload (`WIRE-31`).
pub(crate) fn looks_like_header(bytes: &[u8], from_port: u16, to_port: u16) -> bool {
    let Some(header) = bytes.get(..HEADER_LEN) else { return false };
    let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    if header[13] >> 4 == SEALED_VERSION {
        // SEAL-1; everything else may have any value.
        let is_known =
            Kind::from_wire(header[11]).is_some() || SealKind::from_wire(header[11]).is_some();
        return is_known && u16_at(0) == from_port && u16_at(2) == to_port;
    }
    let (doff, mark) = match Kind::from_wire(header[11]) {
        Some(Kind::Data) => (14 << 4, SPRAYED),
        Some(Kind::Grant) => (5 << 4, SPRAYABLE),
        Some(_) => (5 << 4, 0),
        None => return false,
    };
    // WIRE-33: the upper part of a session occupies the second features field.
    let is_long =
        header[12] & LONG_SESSIONS != 0 && Flags::from_bits(header[13]).contains(Flags::SESSION);
    u16_at(0) == from_port
        && u16_at(2) == to_port
        && header[12] == if is_long { doff | header[12] & (FEATURES | mark) } else { doff }
        && header[13] >> 4 == UDP_VERSION
        && (is_long || header[18] == 0)
}

/// Returns the end offsets of the packets in a datagram of `len` bytes. `bytes` are its captured
/// bytes and start with a header.
pub(crate) fn packet_ends(bytes: &[u8], len: usize, from_port: u16, to_port: u16) -> Vec<usize> {
    let size = segment_size(bytes, len, from_port, to_port);
    let mut ends = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let segment_end = len.min((start / size + 1) * size);
        let rest = &bytes[start..bytes.len().min(segment_end)];
        let clear = if is_sealed(rest) { None } else { Some(rest) };
        let end = clear
            .and_then(announced_len)
            .map_or(segment_end, |announced| start.saturating_add(announced));
        let goes_on = end < segment_end
            && bytes.get(end..).is_some_and(|behind| looks_like_header(behind, from_port, to_port));
        start = if goes_on { end } else { segment_end };
        ends.push(start);
    }
    ends
}

/// Returns the size of all packets but the last in a datagram of `len` bytes. `bytes` are its
/// captured bytes and start with a header. Returns `len` if the datagram is a single packet.
fn segment_size(bytes: &[u8], len: usize, from_port: u16, to_port: u16) -> usize {
    let ports = &bytes[..4];
    let matches = |size: usize| {
        (size..bytes.len()).step_by(size).all(|at| {
            let rest = &bytes[at..];
            // The capture may have truncated the last packet within its header.
            looks_like_header(rest, from_port, to_port)
                || (rest.len() < HEADER_LEN && len > bytes.len())
        })
    };
    let beginnings =
        (HEADER_LEN..bytes.len().saturating_sub(3)).filter(|&at| bytes[at..].starts_with(ports));
    beginnings.into_iter().find(|&size| matches(size)).unwrap_or(len.max(1))
}
