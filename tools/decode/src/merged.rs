//! Where does a packet end that was merged with others?
//!
//! Packets of equal size that leave in one call (UDP_SEGMENT), or arrive in one (UDP_GRO), are one datagram to
//! whoever listens on the host: on the loopback interface always, elsewhere wherever the interface does the work.
//! Their size stands nowhere. But every packet begins with a header between the same ports, so the size is the
//! smallest number at all of whose multiples such a header stands.

use apus_wire::{HEADER_LEN, Kind, UDP_VERSION};

/// Whether these bytes look like a header of the udp profile between these ports (`WIRE-2`, `WIRE-4`, `WIRE-20`).
pub(crate) fn looks_like_header(bytes: &[u8], from_port: u16, to_port: u16) -> bool {
    let Some(header) = bytes.get(..HEADER_LEN) else { return false };
    let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let doff = match Kind::from_wire(header[11]) {
        Some(Kind::Data) => 14 << 4,
        Some(_) => 5 << 4,
        None => return false,
    };
    u16_at(0) == from_port
        && u16_at(2) == to_port
        && header[12] == doff
        && header[13] >> 4 == UDP_VERSION
        && u16_at(18) == 0
}

/// Bytes of each packet but the last in a datagram of `len` bytes, of which `bytes` are there and begin with a
/// header; `len` if there is one packet.
pub(crate) fn packet_size(bytes: &[u8], len: usize, from_port: u16, to_port: u16) -> usize {
    let ports = &bytes[..4];
    let fits = |size: usize| {
        (size..bytes.len()).step_by(size).all(|at| {
            let rest = &bytes[at..];
            // The capture may have cut the last one off in its header.
            looks_like_header(rest, from_port, to_port)
                || (rest.len() < HEADER_LEN && len > bytes.len())
        })
    };
    let beginnings =
        (HEADER_LEN..bytes.len().saturating_sub(3)).filter(|&at| bytes[at..].starts_with(ports));
    beginnings.into_iter().find(|&size| fits(size)).unwrap_or(len.max(1))
}
