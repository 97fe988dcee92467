//! Marked packets leave from spray ports in turn, and are attributed to the port in their header.
//! Requirements SEND-15 and WIRE-36.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};

use apus_driver::{Burst, Driver};
use apus_socket::{Udp, UdpConfig};
use rustix::event::PollFlags;

use crate::host::{Host, LOOPBACK, bound_to};

const PORTS: u8 = 3;

fn spraying(bind: &str) -> UdpConfig {
    UdpConfig { spray_ports: PORTS, ..bound_to(bind) }
}

/// The header of a DATA packet in a session, from a sender with port 7.
fn header(is_marked: bool) -> Vec<u8> {
    let mut header = vec![0; 56];
    (header[1], header[11], header[13]) = (7, 0x10, 0x11);
    header[12] = if is_marked { 0xeb } else { 0xe3 };
    header
}

/// Sends a burst of `packets` packets with `payload` bytes each.
fn send(host: &mut Host, to: SocketAddr, is_marked: bool, packets: usize, payload: usize) {
    let headers = header(is_marked).repeat(packets);
    let burst = Burst {
        headers: &headers,
        header_len: 56,
        payload: &[&vec![7; packets * payload]],
        segment: payload,
        ..Burst::single(to, &[])
    };
    host.transmit.send(&burst).unwrap();
}

/// Returns the source ports of the next packets.
fn ports(peer: &UdpSocket, packets: usize) -> Vec<u16> {
    (0..packets).map(|_| peer.recv_from(&mut [0; 10_000]).unwrap().1.port()).collect()
}

#[test]
fn marked_packets_leave_from_other_ports_in_turn() {
    for (bind, at) in [
        (LOOPBACK, LOOPBACK),
        ("0.0.0.0:0", LOOPBACK),
        ("[::]:0", LOOPBACK),
        ("[::1]:0", "[::1]:0"),
    ] {
        let Ok(peer) = UdpSocket::bind(at) else {
            eprintln!("SKIPPED: no address {at} here");
            continue;
        };
        let driver = Udp::open(&spraying(bind)).unwrap();
        assert_eq!(driver.capabilities().spray_ports, usize::from(PORTS));
        let (mut host, to) = (Host::of(driver), peer.local_addr().unwrap());
        let own = host.address.port();
        // Copied, and gathered from the engine's memory.
        for payload in [100, 5_000] {
            let mut seen = Vec::new();
            for _ in 0..2 * PORTS {
                send(&mut host, to, true, 2, payload);
                send(&mut host, to, false, 1, payload);
                host.flush();
                let ports = ports(&peer, 3);
                assert_eq!(ports[0], ports[1], "a burst leaves from one port");
                assert_eq!(ports[2], own, "what bears no mark leaves from the own port, behind it");
                seen.push(ports[0]);
            }
            let (first, second) = seen.split_at(PORTS.into());
            assert_eq!(first, second, "in turn");
            let others: HashSet<_> = first.iter().filter(|port| **port != own).collect();
            assert_eq!(others.len(), PORTS.into(), "{bind}, {payload} bytes");
        }
        assert_eq!(host.counters.sprayed_sends(), 4 * u64::from(PORTS));
        assert_eq!(host.counters.packets_sent(), 12 * u64::from(PORTS));
    }
}

/// Marked packets of several bursts leave in one flush without sharing a send.
#[test]
fn bursts_that_wait_leave_from_the_ports_that_they_were_given() {
    let (mut host, peer) = (Host::open(&spraying(LOOPBACK)), UdpSocket::bind(LOOPBACK).unwrap());
    for marked in [true, false, true, true] {
        send(&mut host, peer.local_addr().unwrap(), marked, 1, 100);
    }
    host.flush();
    let ports = ports(&peer, 4);
    assert_eq!(ports[1], host.address.port());
    assert_eq!(ports.iter().collect::<HashSet<_>>().len(), 4);
}

#[test]
fn without_ports_a_mark_has_no_meaning() {
    let (mut host, peer) = (Host::open(&bound_to(LOOPBACK)), UdpSocket::bind(LOOPBACK).unwrap());
    send(&mut host, peer.local_addr().unwrap(), true, 1, 100);
    host.flush();
    assert_eq!(ports(&peer, 1), [host.address.port()]);
    peer.send_to(&header(true), host.address).unwrap();
    assert_eq!(senders(&mut host, 1), [peer.local_addr().unwrap().port()]);
}

/// Returns the sender ports that the driver reports for the next packets.
fn senders(host: &mut Host, packets: usize) -> Vec<u16> {
    let mut ports = Vec::new();
    while ports.len() < packets {
        host.wait(PollFlags::IN);
        host.receive.receive(64).unwrap();
        host.receive.drain(&mut |arrival| ports.push(arrival.from.port()));
    }
    ports
}

#[test]
fn a_marked_packet_is_taken_for_one_of_the_port_in_its_header() {
    for config in
        [spraying(LOOPBACK), UdpConfig { receive_coalescing_usecs: 1_000, ..spraying(LOOPBACK) }]
    {
        let (mut host, peer) = (Host::open(&config), UdpSocket::bind(LOOPBACK).unwrap());
        let own = peer.local_addr().unwrap().port();
        for (packet, from) in [
            (header(true), 7),
            (header(false), own),
            (header(true)[..27].to_vec(), own),
            (Vec::new(), own),
        ] {
            peer.send_to(&packet, host.address).unwrap();
            assert_eq!(senders(&mut host, 1), [from], "{packet:x?}");
        }
    }
}

/// Packets to a spray port are not received: the socket's buffer stays empty.
#[test]
fn nothing_arrives_at_the_other_ports() {
    let (mut host, peer) = (Host::open(&spraying(LOOPBACK)), UdpSocket::bind(LOOPBACK).unwrap());
    send(&mut host, peer.local_addr().unwrap(), true, 1, 100);
    host.flush();
    let other = SocketAddr::new(host.address.ip(), ports(&peer, 1)[0]);
    peer.send_to(b"to another port", other).unwrap();
    peer.send_to(b"to its own", host.address).unwrap();
    assert_eq!(senders(&mut host, 1).len(), 1);
    assert!(!host.is_readable());
    // The port is open: a connected socket would get an error for a closed one.
    peer.connect(other).unwrap();
    peer.send(b"once more").unwrap();
    peer.send(b"and again").unwrap();
}
