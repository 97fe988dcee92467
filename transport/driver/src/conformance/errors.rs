//! Errors: failure of one destination never stops packets to another one (DRIVER-4).

use std::net::SocketAddr;
use std::time::Instant;

use super::host::{HEADER_LEN, Host, ReceivedReport, assert_same, pattern};
use super::{Fixture, WATCHDOG};
use crate::NetworkError;

/// Packets to a closed port cause a report; packets before and after them in the same flush
/// arrive.
pub fn a_closed_peer_is_reported_and_others_are_unaffected(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let (closed, _keep_closed) = fixture.closed_address();
    let lost = pattern(77, 1);
    let began = Instant::now();
    for round in 0.. {
        assert!(began.elapsed() < WATCHDOG, "no report");
        let (before, after) = (pattern(50, 2 * round), pattern(60, 2 * round + 1));
        client.send(server.address, &before);
        client.send(closed, &lost);
        client.send(server.address, &after);
        client.flush();
        assert_same(&[before, after], &server.collect(2));
        if !client.capabilities.reports {
            return;
        }
        client.linger();
        client.receive_all(10, &mut Vec::new());
        if !client.reports.is_empty() && round >= 10 {
            break;
        }
    }
    // Reports may be merged or lost, but the ones that arrive must be correct.
    for ReceivedReport { peer, error, packet } in &client.reports {
        assert_eq!((*peer, *error), (closed, NetworkError::PortClosed));
        assert!(lost.starts_with(packet), "the report contains the start of the lost packet");
    }
    assert_no_wake_up_loop(&mut client);
}

/// A single packet exceeds the limit of the path.
pub fn a_too_long_packet_is_reported_and_others_are_unaffected(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let limit = client.transmit.packet_limit(server.address);
    for excess in [1, 100_000] {
        let (before, after) = (pattern(50, 1), pattern(60, 2));
        client.send(server.address, &before);
        client.send(server.address, &pattern(limit + excess, 3));
        client.send(server.address, &after);
        client.flush();
        assert_same(&[before, after], &server.collect(2));
        assert_too_big(&mut client, server.address, &pattern(limit + excess, 3));
    }
}

/// Several packets of one burst exceed the limit of the path.
pub fn a_too_long_burst_is_reported_and_others_are_unaffected(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let limit = client.transmit.packet_limit(server.address);
    let packets: Vec<_> = (0..3).map(|_| pattern(limit + 1, 3)).collect();
    let (before, after) = (pattern(50, 1), pattern(limit, 2));
    client.send(server.address, &before);
    client.send_packets(server.address, &packets, &[usize::MAX]);
    client.send(server.address, &after);
    client.flush();
    assert_same(&[before, after], &server.collect(2));
    assert_too_big(&mut client, server.address, &packets[0]);
}

/// Asserts that failures detected by `flush` are reported at once (DRIVER-6).
fn assert_too_big(client: &mut Host, peer: SocketAddr, packet: &[u8]) {
    client.receive_all(10, &mut Vec::new());
    assert!(!client.reports.is_empty(), "no report");
    for report in client.reports.drain(..) {
        assert_eq!((report.peer, report.error), (peer, NetworkError::TooBig));
        assert!(packet.starts_with(&report.packet));
        assert!(report.packet.len() >= HEADER_LEN, "the sender still has the packet");
    }
    assert_no_wake_up_loop(client);
}

/// Asserts that a received report does not wake the engine again.
fn assert_no_wake_up_loop(client: &mut Host) {
    let began = Instant::now();
    while client.is_readable() {
        assert!(began.elapsed() < WATCHDOG, "the descriptor stays readable: a wake-up loop");
        client.receive_all(10, &mut Vec::new());
    }
}
