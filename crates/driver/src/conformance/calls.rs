//! D1, D5, D6: what each call promises.

use super::Fixture;
use super::host::{Host, assert_same, pattern};

/// What `send` accepted is on its way after `flush`, and then nothing is pending.
pub fn flush_sends_what_was_held_back(fixture: &dyn Fixture) {
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

/// Flushing costs nothing and sends nothing if nothing is there.
pub fn a_flush_without_packets_is_fine(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    assert!(client.transmit.has_room() && !client.transmit.has_pending());
    client.flush();
    client.flush();
    let mut packets = Vec::new();
    assert_eq!(server.take(10, &mut packets), 0);
}

/// The engine sleeps on the descriptor, so it must be readable when and only when there is work.
pub fn the_descriptor_is_readable_while_packets_wait(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let mut packets = Vec::new();
    assert!(!server.is_readable(), "nothing has come yet");
    for round in 0..3 {
        client.send(server.address, &pattern(50, round));
        client.flush();
        server.wait_readable();
        packets.clear();
        server.take(10, &mut packets);
        assert_eq!(packets.len(), 1);
        assert!(!server.is_readable(), "everything was taken");
    }
}

/// A turn of the engine has a quota; one merged datagram may exceed it.
pub fn a_receive_stays_near_its_limit(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let merged_at_most = 64;
    for limit in [1, 8, 50] {
        // Sizes that do not merge, and a few that do.
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
            let most = server.take(limit, &mut got);
            assert!(most <= limit + merged_at_most, "{most} packets with limit {limit}");
        }
        assert_same(&packets, &got);
    }
}

/// What was drained does not come again.
pub fn nothing_is_received_twice(fixture: &dyn Fixture) {
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
