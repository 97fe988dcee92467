//! Packets that the module sends.

use std::net::IpAddr;

use apus_wire::{
    Body, Dialect, Header, HeaderBuffer, KernelFields, MAX_HEADER_LEN, Packet as Written, SenderId,
};
use bytes::Bytes;

/// An outgoing packet without IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModulePacket {
    /// Destination.
    pub to: IpAddr,
    /// Priority level, 0 to 7.
    pub priority: u8,
    /// Header and payload.
    pub bytes: Bytes,
    /// Length of the header.
    pub header_len: usize,
}

/// A queued control packet.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) to: IpAddr,
    pub(super) bytes: Bytes,
}

/// Writes the header of a packet.
pub(super) fn write(ports: (u16, u16), id: SenderId, body: Body<'_>) -> Vec<u8> {
    let dialect = Dialect::Kernel(KernelFields::OURS);
    let mut header = Header::new(body.kind(), ports.0, ports.1, id, dialect);
    if let Body::Data(data, _) = &body {
        header.sequence = data.offset;
    }
    let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
    let len = Written { header, body }.emit_header(&mut buffer);
    buffer[..len].to_vec()
}
