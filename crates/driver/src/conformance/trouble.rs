//! D4: trouble with one destination never stops packets to another one.

use std::net::SocketAddr;
use std::time::Instant;

use super::host::{HEADER_LEN, Host, Seen, assert_same, pattern};
use super::{Fixture, WATCHDOG};
use crate::NetworkError;

/// Packets to a port where nobody listens give a report; packets before and after them in the same
/// flush arrive.
pub fn a_closed_peer_is_reported_and_disturbs_nobody(fixture: &dyn Fixture) {
    let (mut client, mut server) = (Host::open(fixture), Host::open(fixture));
    let (closed, _keep_closed) = fixture.closed();
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
        client.take(10, &mut Vec::new());
        if !client.reports.is_empty() && round >= 10 {
            break;
        }
    }
    // Reports may be shared or lost on their way, but those that came must be right.
    for Seen { peer, trouble, packet } in &client.reports {
        assert_eq!((*peer, *trouble), (closed, NetworkError::PortClosed));
        assert!(lost.starts_with(packet), "the returned beginning is that of the lost packet");
    }
    assert_calms_down(&mut client);
}

/// A single packet that is longer than the path carries.
pub fn a_too_long_packet_is_reported_and_disturbs_nobody(fixture: &dyn Fixture) {
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

/// Several packets that are longer than the path carries, in one burst.
pub fn a_too_long_burst_is_reported_and_disturbs_nobody(fixture: &dyn Fixture) {
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

/// Reports of what `flush` found out are there at once (D6).
fn assert_too_big(client: &mut Host, peer: SocketAddr, packet: &[u8]) {
    client.take(10, &mut Vec::new());
    assert!(!client.reports.is_empty(), "no report");
    for seen in client.reports.drain(..) {
        assert_eq!((seen.peer, seen.trouble), (peer, NetworkError::TooBig));
        assert!(packet.starts_with(&seen.packet));
        assert!(seen.packet.len() >= HEADER_LEN, "the sender still has the packet");
    }
    assert_calms_down(client);
}

/// A report that was taken must not wake the engine again.
fn assert_calms_down(client: &mut Host) {
    let began = Instant::now();
    while client.is_readable() {
        assert!(began.elapsed() < WATCHDOG, "the descriptor stays readable: a wake-up loop");
        client.take(10, &mut Vec::new());
    }
}
