//! Integrity: a packet arrives whole and unchanged (DRIVER-2), in bursts of any length (DRIVER-3).

use super::Fixture;
use super::host::{HEADER_LEN, Host, assert_same, pattern};

/// Packets from one byte to the packet limit.
pub fn packets_of_every_size_arrive_unchanged(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let limit = client.transmit.packet_limit(server.address);
    let powers = (6..).map(|bits| 1_usize << bits).take_while(|power| *power < limit);
    let around = powers.flat_map(|power| [power - 1, power, power + 1]);
    let sizes = (1..=64).chain(around).chain([limit - 1, limit]).filter(|size| *size <= limit);
    for size in sizes {
        let packet = pattern(size, size);
        client.send(server.address, &packet);
        client.flush();
        assert_same(&[packet], &server.collect(1));
    }
}

/// Bursts of one to 64 packets, with a shorter last packet or without.
pub fn bursts_of_every_length_arrive_unchanged(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    for count in 1..=64 {
        let size = HEADER_LEN + 1 + 3 * count;
        for last in [HEADER_LEN + 1, size / 2 + 3, size] {
            let packets = burst(count, size, last);
            client.send_packets(server.address, &packets, &[usize::MAX]);
            client.flush();
            assert_same(&packets, &server.collect(count));
        }
    }
}

/// Packets at the limit of the path, as many as fit into the receiver's buffer, up to 64.
pub fn long_bursts_arrive_unchanged(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let limit = client.transmit.packet_limit(server.address);
    for size in [limit, limit / 2, limit / 5].map(|size| size.max(HEADER_LEN + 2)) {
        let count = (server.budget() / size).clamp(1, 64);
        for last in [HEADER_LEN + 1, size - 1, size] {
            let packets = burst(count, size, last);
            client.send_packets(server.address, &packets, &[1 << 16]);
            client.flush();
            assert_same(&packets, &server.collect(count));
        }
    }
}

/// The payload is cut into slices that end anywhere, including empty and very many slices.
pub fn slices_may_end_anywhere_in_a_packet(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let limit = client.transmit.packet_limit(server.address);
    for slices in [&[1][..], &[7, 0, 333], &[1000, 1], &[0, 0, 5000, 3, 41]] {
        for size in [30, 200, limit.min(1472), limit] {
            let count = (server.budget() / size).clamp(1, 9);
            let packets = burst(count, size, size.min(29));
            client.send_packets(server.address, &packets, slices);
            client.flush();
            assert_same(&packets, &server.collect(count));
        }
    }
}

/// Control packets have no payload.
pub fn packets_may_be_only_a_header(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let packets: Vec<_> = (0..20).map(|salt| pattern(HEADER_LEN, salt)).collect();
    for packet in &packets {
        client.send(server.address, packet);
    }
    client.flush();
    assert_same(&packets, &server.collect(packets.len()));
}

/// Returns `count` packets of `size` bytes, the last one of `last` bytes.
fn burst(count: usize, size: usize, last: usize) -> Vec<Vec<u8>> {
    let len = |index| if index + 1 == count { last } else { size };
    let mut packets: Vec<_> = (0..count).map(|index| pattern(len(index), index)).collect();
    // The packets of a burst differ, so that a permutation is detected.
    for (packet, number) in packets.iter_mut().zip(0_u8..) {
        packet[0] = number;
    }
    packets
}
