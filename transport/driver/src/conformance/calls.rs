//! Calls of the halves: DRIVER-1, DRIVER-5, DRIVER-6.

use super::Fixture;
use super::host::{Host, assert_same, pattern};

/// Packets accepted by `send` are sent by `flush`, and then no packet is pending.
pub fn flush_sends_pending_packets(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    for round in 0..50 {
        let packets: Vec<_> = (0..=round % 5).map(|index| pattern(80 + index, round)).collect();
        for packet in &packets {
            client.send(server.address, packet);
        }
        client.flush();
        assert_same(&packets, &server.collect(packets.len()));
    }
}

/// Flushing sends nothing if no packet is pending.
pub fn a_flush_without_packets_does_nothing(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    assert!(client.transmit.has_room() && !client.transmit.has_pending());
    client.flush();
    client.flush();
    let mut packets = Vec::new();
    assert_eq!(server.receive_all(10, &mut packets), 0);
}

/// The engine sleeps on the descriptor, which must be readable if and only if there is work.
pub fn the_descriptor_is_readable_while_packets_wait(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let mut packets = Vec::new();
    assert!(!server.is_readable(), "no packet has arrived yet");
    for round in 0..3 {
        client.send(server.address, &pattern(50, round));
        client.flush();
        server.wait_readable();
        packets.clear();
        server.receive_all(10, &mut packets);
        assert_eq!(packets.len(), 1);
        assert!(!server.is_readable(), "every packet was received");
    }
}

/// A pass of the engine has a quota; one merged datagram may exceed it.
pub fn a_receive_stays_near_its_limit(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let merged_at_most = 64;
    for limit in [1, 8, 50] {
        // Sizes that do not merge, and sizes that do.
        let packets: Vec<_> = (0..150)
            .map(|index| pattern(if index % 3 == 0 { 60 } else { 61 + index }, index))
            .collect();
        for packet in &packets {
            client.send(server.address, packet);
        }
        client.flush();
        let mut got = Vec::new();
        while got.len() < packets.len() {
            server.wait_readable();
            let most = server.receive_all(limit, &mut got);
            assert!(most <= limit + merged_at_most, "{most} packets with limit {limit}");
        }
        assert_same(&packets, &got);
    }
}

/// A drained packet is not received again.
pub fn no_packet_is_received_twice(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    client.send(server.address, b"only once");
    client.flush();
    server.wait_readable();
    assert_eq!(server.receive.receive(10).unwrap(), 1);
    for expected in [1, 0] {
        let mut drained = 0;
        server.receive.drain(&mut |_| drained += 1);
        assert_eq!(drained, expected);
    }
    assert_eq!(server.receive.receive(10).unwrap(), 0);
}
