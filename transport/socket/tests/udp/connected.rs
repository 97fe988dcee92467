//! Connected sockets for frequent peers, which receive no packets.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use apus_driver::{Burst, Driver, NetworkError};
use apus_socket::{Udp, UdpConfig};
use rustix::event::PollFlags;

use crate::host::{Host, LOOPBACK, bound_to};

/// More sends than are needed to open a socket.
const MANY: usize = 2_000;

/// More sends to others than are needed to close a socket.
const LONG: usize = 5_000;

/// Sends a single packet.
fn send_alone(host: &mut Host, to: SocketAddr, from: Option<IpAddr>) {
    host.transmit.send(&Burst { from, ..Burst::single(to, b"alone") }).unwrap();
    host.flush();
}

/// Sends packets one at a time until the peer has a socket. Returns the packets received by a bare
/// socket.
fn connect(host: &mut Host, peer: &UdpSocket, from: Option<IpAddr>) {
    let before = host.counters.peers_connected();
    for _ in 0..MANY {
        send_alone(host, peer.local_addr().unwrap(), from);
        peer.recv_from(&mut [0; 10]).unwrap();
    }
    // If the system chooses the source address, the socket is replaced when it is a second old.
    assert!(host.counters.peers_connected() > before);
    assert!(host.counters.connected_sends() > 0);
}

fn peer() -> UdpSocket {
    UdpSocket::bind(LOOPBACK).unwrap()
}

/// The possible addresses of a host, and of its peers.
const FAMILIES: [(&str, &str); 5] = [
    (LOOPBACK, LOOPBACK),
    ("0.0.0.0:0", LOOPBACK),
    ("[::1]:0", "[::1]:0"),
    ("[::]:0", "[::1]:0"),
    ("[::]:0", LOOPBACK),
];

#[test]
fn a_peer_sees_the_address_and_the_port_of_the_driver() {
    for (bind, at) in FAMILIES {
        let Ok(peer) = UdpSocket::bind(at) else {
            eprintln!("SKIPPED: no address {at} here");
            continue;
        };
        let mut host = Host::open(&bound_to(bind));
        let address = peer.local_addr().unwrap();
        for source in [None, Some(address.ip())] {
            connect(&mut host, &peer, source);
            let sent = host.counters.connected_sends();
            while host.counters.connected_sends() == sent {
                send_alone(&mut host, address, source);
                let (_, from) = peer.recv_from(&mut [0; 10]).unwrap();
                let expected = SocketAddr::new(address.ip(), host.address.port());
                assert_eq!(from, expected, "{bind} to {at}");
            }
            // A socket with one address has one source, even if another one is requested.
            if !host.address.ip().is_unspecified() {
                break;
            }
        }
    }
}

#[test]
fn what_arrives_arrives_at_the_one_socket() {
    for (bind, at) in FAMILIES {
        let Ok(peer) = UdpSocket::bind(at) else {
            eprintln!("SKIPPED: no address {at} here");
            continue;
        };
        let other = UdpSocket::bind(at).unwrap();
        let mut host = Host::open(&bound_to(bind));
        let address = SocketAddr::new(peer.local_addr().unwrap().ip(), host.address.port());
        peer.send_to(b"before", address).unwrap();
        connect(&mut host, &peer, None);
        peer.send_to(b"and after", address).unwrap();
        other.send_to(b"of another", address).unwrap();
        let mut packets = Vec::new();
        host.collect(3, &mut |packet| packets.push(packet.to_vec()));
        assert_eq!(packets, [&b"before"[..], b"and after", b"of another"], "{bind} and {at}");
    }
}

#[test]
fn a_closed_port_is_reported_as_before() {
    for bind in [LOOPBACK, "0.0.0.0:0", "[::]:0"] {
        let (mut host, peer) = (Host::open(&bound_to(bind)), peer());
        let address = peer.local_addr().unwrap();
        connect(&mut host, &peer, Some(address.ip()));
        // Connected to itself, it refuses packets of other sockets and keeps the port.
        peer.connect(address).unwrap();
        let sent = host.counters.connected_sends();
        send_alone(&mut host, address, Some(address.ip()));
        assert_eq!(host.counters.connected_sends(), sent + 1);
        host.wait(PollFlags::IN);
        assert_eq!(host.receive.receive(64).unwrap(), 0);
        assert_eq!(host.reports(), [(address, NetworkError::PortClosed)], "{bind}");
        assert!(!host.is_readable(), "one report wakes once");
    }
}

#[test]
fn a_response_leaves_from_the_address_of_the_request() {
    for bind in ["0.0.0.0:0", "[::]:0"] {
        let (mut host, peer) = (Host::open(&bound_to(bind)), peer());
        connect(&mut host, &peer, Some("127.0.0.1".parse().unwrap()));
        // The system would not choose this address, so it has no socket.
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        let connected = host.counters.peers_connected();
        for _ in 0..MANY {
            send_alone(&mut host, peer.local_addr().unwrap(), Some(other));
            let (_, from) = peer.recv_from(&mut [0; 10]).unwrap();
            assert_eq!(from, SocketAddr::new(other, host.address.port()));
        }
        assert_eq!(host.counters.peers_connected(), connected, "{bind}");
        // A host with one address has no other source for the system to choose.
        let mut host = Host::open(&bound_to("127.0.0.3:0"));
        for _ in 0..MANY {
            send_alone(&mut host, peer.local_addr().unwrap(), None);
            assert_eq!(peer.recv_from(&mut [0; 10]).unwrap().1, host.address);
        }
        assert_eq!(host.counters.peers_connected(), 0);
    }
}

#[test]
fn at_most_four_peers_have_sockets_and_others_take_their_places() {
    let mut host = Host::open(&bound_to(LOOPBACK));
    let peers: Vec<_> = (0..5).map(|_| peer()).collect();
    for peer in &peers[..4] {
        connect(&mut host, peer, None);
    }
    let last = &peers[4];
    let sends_to_last = |host: &mut Host, count| {
        let before = host.counters.connected_sends();
        for _ in 0..count {
            send_alone(host, last.local_addr().unwrap(), None);
            last.recv_from(&mut [0; 10]).unwrap();
        }
        host.counters.connected_sends() - before
    };
    assert_eq!(sends_to_last(&mut host, MANY / 4), 0, "all places are taken");
    assert_eq!(host.counters.peers_connected(), 4);
    assert!(sends_to_last(&mut host, LONG) > 0, "none of them has sends any more");
    assert_eq!(host.counters.peers_connected(), 5);
    // Packets arrive with and without a connected socket.
    for peer in &peers {
        send_alone(&mut host, peer.local_addr().unwrap(), None);
        assert_eq!(peer.recv_from(&mut [0; 10]).unwrap(), (5, host.address));
    }
}

#[test]
fn peers_that_alternate_have_no_sockets_if_they_are_many() {
    let mut host = Host::open(&bound_to(LOOPBACK));
    let peers: Vec<_> = (0..20).map(|_| peer()).collect();
    for _ in 0..MANY {
        for peer in &peers {
            send_alone(&mut host, peer.local_addr().unwrap(), None);
            peer.recv_from(&mut [0; 10]).unwrap();
        }
    }
    assert_eq!(host.counters.peers_connected(), 0);
}

#[test]
fn nothing_is_connected_if_it_is_switched_off() {
    let config = UdpConfig { connect_after: 0, ..bound_to(LOOPBACK) };
    let (mut host, peer) = (Host::open(&config), peer());
    for _ in 0..MANY {
        send_alone(&mut host, peer.local_addr().unwrap(), None);
        peer.recv_from(&mut [0; 10]).unwrap();
    }
    assert_eq!((host.counters.peers_connected(), host.counters.connected_sends()), (0, 0));
}

#[test]
fn several_packets_in_one_send_arrive_whole() {
    let (mut host, peer) = (Host::open(&bound_to(LOOPBACK)), peer());
    connect(&mut host, &peer, None);
    let (headers, payload) = ([7; 3], [8; 3 * 500]);
    let burst = Burst {
        header_len: 1,
        payload: &[&payload],
        segment: 500,
        ..Burst::single(peer.local_addr().unwrap(), &headers)
    };
    let (sends, connected) = (host.counters.send_calls(), host.counters.connected_sends());
    host.transmit.send(&burst).unwrap();
    host.flush();
    assert_eq!(host.counters.send_calls(), sends + 1);
    assert_eq!(host.counters.connected_sends(), connected + 1);
    for _ in 0..3 {
        let mut packet = [0; 600];
        assert_eq!(peer.recv(&mut packet).unwrap(), 501);
        assert_eq!((packet[0], packet[500]), (7, 8));
    }
}

/// The address is bound as without connected sockets, and free once the driver has ended.
#[test]
fn no_other_socket_gets_the_port_while_the_driver_lives() {
    for bind in [LOOPBACK, "0.0.0.0:0", "[::]:0"] {
        let (mut host, peer) = (Host::open(&bound_to(bind)), peer());
        connect(&mut host, &peer, None);
        let again = bound_to(&host.address.to_string());
        assert!(Udp::open(&again).is_err(), "{bind}");
        assert!(Udp::open_group(&again, 2).is_err(), "{bind}");
        drop(host);
        Udp::open(&again).unwrap();
    }
}

/// Each sender keeps its shard, and each shard has senders.
#[test]
fn a_group_of_sockets_is_spread_as_before() {
    for bind in [LOOPBACK, "0.0.0.0:0"] {
        let group = Udp::open_group(&bound_to(bind), 3).unwrap();
        let port = group[0].local_addr().port();
        let mut shards: Vec<_> = group.into_iter().map(Host::of).collect();
        let senders: Vec<_> = (0..24).map(|_| peer()).collect();
        let shard_of = |shards: &mut [Host], sender: &UdpSocket| {
            sender.send_to(b"x", (LOOPBACK.split(':').next().unwrap(), port)).unwrap();
            let mut found = None;
            while found.is_none() {
                found = shards.iter_mut().position(|shard| {
                    let received = shard.receive.receive(64).unwrap();
                    shard.receive.drain(&mut |_| ());
                    received > 0
                });
            }
            found
        };
        let before: Vec<_> = senders.iter().map(|sender| shard_of(&mut shards, sender)).collect();
        for shard in &mut shards {
            connect(shard, &senders[0], None);
        }
        let after: Vec<_> = senders.iter().map(|sender| shard_of(&mut shards, sender)).collect();
        assert_eq!(before, after, "{bind}");
    }
}
