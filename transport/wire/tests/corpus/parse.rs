//! Properties of any bytes that are parsed as a packet.

use apus_wire::{Body, HeaderBuffer, MAX_HEADER_LEN, MAX_PACKETS, Packet, Profile, announced_len};

/// In both profiles: no panic (CODEC-1), data inside its message (CODEC-2), and a parsed packet is
/// written and parsed again as the same.
pub(crate) fn run(bytes: &[u8]) {
    packets(bytes);
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

/// A datagram ends after some packets, none of which is longer than announced, and at the first
/// malformed one (WIRE-29).
fn packets(datagram: &[u8]) {
    let packets: Vec<_> = Packet::all(Profile::Udp, datagram).collect();
    assert!((1..=MAX_PACKETS).contains(&packets.len()));
    let (_, before) = packets.split_last().expect("at least one");
    let mut rest = datagram;
    for packet in before {
        let packet = packet.as_ref().expect("only the last one may be wrong");
        let len = announced_len(rest).expect("a packet says where it ends");
        assert_eq!(Packet::parse(Profile::Udp, &rest[..len]).as_ref(), Ok(packet));
        rest = &rest[len..];
    }
}
