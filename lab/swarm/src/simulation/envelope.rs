//! Envelopes: what the IP and UDP headers of a packet say, where that is not what the fabric knows.
//!
//! The fabric carries packets between hosts. A packet from or to the hostile host begins with the address that its
//! sender states or that it is sent to.

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
/// There is no envelope.
pub(super) fn unwrap(bytes: &Bytes) -> (HostId, Bytes) {
    let peer = bytes.first_chunk().expect("the hostile host's packets have envelopes");
    (HostId::from_be_bytes(*peer), bytes.slice(size_of::<HostId>()..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_taken_off_as_it_was_put_on() {
        assert_eq!(unwrap(&wrap(0x0102_0304, b"packet")), (0x0102_0304, Bytes::from("packet")));
        assert_eq!(unwrap(&wrap(7, b"")), (7, Bytes::new()));
    }
}
