//! Merging: all packets arrive, however they are merged and split in between (DRIVER-3).

use super::Fixture;
use super::host::{HEADER_LEN, Host, assert_same, pattern};

/// A hundred messages of one small packet each in one flush: the case that merging is for.
pub fn small_packets_of_many_bursts_all_arrive(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let packets: Vec<_> = (0..100).map(|salt| pattern(156, salt)).collect();
    for _ in 0..3 {
        for packet in &packets {
            client.send(server.address, packet);
        }
        client.flush();
        assert_same(&packets, &server.collect(packets.len()));
    }
}

/// Adjacent packets have different sizes.
pub fn packets_of_different_sizes_all_arrive(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let limit = client.transmit.packet_limit(server.address);
    let sizes = [156, 28, 156, 1, 700, 28, 27, limit, 2, 156];
    let packets: Vec<_> =
        (0..50).map(|index| pattern(sizes[index % sizes.len()].min(limit), index)).collect();
    for packets in packets.chunks((server.budget() / limit).max(1)) {
        for packet in packets {
            client.send(server.address, packet);
        }
        client.flush();
        assert_same(packets, &server.collect(packets.len()));
    }
}

/// Packets to more peers than a driver is likely to stage at a time, interleaved.
pub fn packets_to_many_peers_all_arrive(fixture: &dyn Fixture) {
    const ROUNDS: usize = 5;
    let mut client = Host::open(fixture);
    let mut servers: Vec<_> = (0..70).map(|_| Host::open(fixture)).collect();
    let packet = |server, round| pattern(100 + (server + round) % 2, server * ROUNDS + round);
    for round in 0..ROUNDS {
        for (number, server) in servers.iter().enumerate() {
            client.send(server.address, &packet(number, round));
        }
    }
    client.flush();
    for (number, server) in servers.iter_mut().enumerate() {
        let packets: Vec<_> = (0..ROUNDS).map(|round| packet(number, round)).collect();
        assert_same(&packets, &server.collect(ROUNDS));
    }
}

/// A shorter packet is the last of its merged datagram; the next packet must not be merged with it.
pub fn short_last_packets_do_not_harm_their_successors(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let mut sent = Vec::new();
    for round in 0..10 {
        let mut packets: Vec<_> = (0..4).map(|index| pattern(200, round * 10 + index)).collect();
        packets.push(pattern(HEADER_LEN + 1 + round, round * 10 + 4));
        client.send_packets(server.address, &packets, &[50]);
        let single = pattern(200, round * 10 + 5);
        client.send(server.address, &single);
        sent.append(&mut packets);
        sent.push(single);
    }
    client.flush();
    assert_same(&sent, &server.collect(sent.len()));
}

/// All traffic classes, different ones in sequence and many equal ones, in one flush.
pub fn every_traffic_class_is_carried(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let mixed = (0..64_u8).map(|codepoint| codepoint << 2);
    let equal = std::iter::repeat_n(0xb8, 40);
    let classes: Vec<u8> = mixed.chain(equal).chain([0, 0xb8, 0]).collect();
    let packets: Vec<_> = (0..classes.len()).map(|salt| pattern(60, salt)).collect();
    for chunk in [classes.len(), 1] {
        for (packets, classes) in packets.chunks(chunk).zip(classes.chunks(chunk)) {
            for (packet, class) in packets.iter().zip(classes) {
                client.send_class(server.address, *class, packet);
            }
            client.flush();
            assert_same(packets, &server.collect(packets.len()));
        }
    }
}
