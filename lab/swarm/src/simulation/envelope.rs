//! Envelopes: the addresses in a packet's IP and UDP headers, where they differ from the fabric's.
//!
//! The fabric carries packets between hosts. A packet from or to the hostile host starts with the
//! address that its sender states or that it is sent to.

use apus_sim::message::HostId;
use bytes::{BufMut, Bytes, BytesMut};

/// Returns a packet with its envelope.
pub(super) fn wrap(peer: HostId, packet: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(size_of::<HostId>() + packet.len());
    bytes.put_u32(peer);
    bytes.put_slice(packet);
    bytes.freeze()
}

/// Returns the address on an envelope, and the packet.
///
/// # Panics
///
/// The packet has no envelope.
pub(super) fn unwrap(bytes: &Bytes) -> (HostId, Bytes) {
    let peer = bytes.first_chunk().expect("the hostile host's packets have envelopes");
    (HostId::from_be_bytes(*peer), bytes.slice(size_of::<HostId>()..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_round_trip() {
        assert_eq!(unwrap(&wrap(0x0102_0304, b"packet")), (0x0102_0304, Bytes::from("packet")));
        assert_eq!(unwrap(&wrap(7, b"")), (7, Bytes::new()));
    }
}
