//! What holds for any bytes that are parsed as a packet.

use apus_wire::{Body, HeaderBuffer, MAX_HEADER_LEN, Packet, Profile};

/// In both profiles: no panic (CODEC-1), data inside its message (CODEC-2), and what was understood is written
/// and read again as the same.
pub(crate) fn run(bytes: &[u8]) {
    for profile in [Profile::Kernel, Profile::Udp] {
        let Ok(packet) = Packet::parse(profile, bytes) else { continue };
        let mut payload: &[u8] = &[];
        if let Body::Data(data, bytes) = packet.body {
            let is_empty = data.message_length == 0;
            assert_eq!(bytes.is_empty(), is_empty, "CODEC-2");
            assert!(!is_empty || profile == Profile::Udp, "CODEC-2");
            let end = u64::from(data.offset) + bytes.len() as u64;
            assert!(end <= u64::from(data.message_length), "CODEC-2");
            payload = bytes;
        }
        let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
        let len = packet.emit_header(&mut buffer);
        let again = [&buffer[..len], payload].concat();
        assert_eq!(Packet::parse(profile, &again), Ok(packet));
    }
}
