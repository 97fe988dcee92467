//! Sealed packets, whose headers alone are readable (SEAL-1).

use apus_decode::{CapturedPacket, PacketType};
use apus_wire::{Body, Flags, Profile, Role, SealKind, SealedHeader};

use crate::builders::{CLIENT, SERVER, data, decode, ip, packet_with, raw_pcap, words};

/// A sealed DATA packet of 300 bytes.
fn sealed(number: u64) -> Vec<u8> {
    let body = Body::Data(data(300, 0), &[0; 300]);
    let mut packet = packet_with(Profile::Udp, Role::Client, 6, body, Flags::SESSION, 0);
    SealedHeader::seal(&mut packet, number, number % 2 == 1);
    // Ciphertext may resemble anything; here it does not resemble a header.
    packet[28..].fill(0x5a);
    packet.extend([0xa5; 16]);
    packet
}

fn handshake(kind: SealKind, sequence: u32) -> Vec<u8> {
    let mut packet = vec![0; 28];
    SealedHeader::emit(kind, (CLIENT, SERVER), sequence, 0x1234, &mut packet);
    packet.resize(200, 0);
    packet
}

#[test]
fn sealed_packets_and_handshakes_are_named() {
    let packets = [
        handshake(SealKind::Hello, 0),
        handshake(SealKind::Failed, 5),
        handshake(SealKind::NoKey, 0),
        sealed(7),
    ];
    let records = packets.map(|packet| ip(Profile::Udp, Role::Client, &packet));
    assert_eq!(
        words(&records),
        [
            "HELLO [handshake]",
            "FAILED [handshake, cause 5]",
            "NO_KEY [handshake]",
            "DATA rpc 6 [sealed, packet number 7]",
        ]
    );
    let (packets, _) = decode(&raw_pcap(&records));
    assert!(packets.iter().all(|packet| PacketType::of(packet) == PacketType::Sealed));
    assert!(!packets.iter().any(CapturedPacket::is_malformed));
}

#[test]
fn merged_packets_are_split_though_their_contents_are_not_known() {
    let merged: Vec<u8> = (1..=5).flat_map(sealed).collect();
    let shown = words(&[ip(Profile::Udp, Role::Client, &merged)]);
    assert_eq!(shown.len(), 5, "{shown:?}");
    assert_eq!(shown[4], "DATA rpc 6 [sealed, packet number 5]");
}
