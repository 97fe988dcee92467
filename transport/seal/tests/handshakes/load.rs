//! Bounds on the work that unknown clients can cause at a server.

use crate::network::{End, MILLIS, START};
use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_seal::{Datagram, Handshakes, Limits};
use apus_wire::SealKind;
use std::net::SocketAddr;
use std::sync::Arc;

const POLICY: StubPolicy = StubPolicy { name: 1, trust: 2, limit: 1 << 30 };

fn stub(seed: u64) -> Arc<StubNegotiator> {
    Arc::new(StubNegotiator::new(POLICY, seed))
}

fn hello(port: u16, server: SocketAddr) -> (Handshakes, Datagram) {
    let mut client = Handshakes::new(stub(u64::from(port)), port, Limits::default(), START);
    client.want(START, server, None).unwrap();
    let hello = client.poll_transmit().unwrap();
    (client, hello)
}

/// HANDSHAKE-1: a server sends at most three times the length of the client's HELLO; the rest of a
/// longer flight waits.
#[test]
fn an_address_that_has_shown_nothing_gets_less_than_three_times_what_it_sends() {
    let ca = crate::certificates::Ca::new();
    ca.issue("long", |params| {
        for n in 0..150 {
            let name = format!("{n}.a-rather-long-name-for-a-host.example").try_into().unwrap();
            params.subject_alt_names.push(rcgen::SanType::DnsName(name));
        }
    });
    let server = crate::certificates::negotiator(&ca.credentials("long"));
    let mut ends = [End::new(1, ca.negotiator("a")), End::new(2, server)];
    let (client, server) = (ends[0].address, ends[1].address);
    ends[0].handshakes.want(START, server, None).unwrap();
    let hello = ends[0].handshakes.poll_transmit().unwrap().packet;
    assert_eq!(hello.len(), 1_200);
    // SEAL-8: type, version, no cookie, and the length of the piece.
    assert_eq!((hello[11], hello[13], hello[28]), (0x20, 0x20, 0));
    let length = usize::from(u16::from_be_bytes([hello[29], hello[30]]));
    assert!(hello[31 + length..].iter().all(|byte| *byte == 0) && hello[31] == 1, "a ClientHello");
    for attempt in 1..=2 {
        ends[1].receive(START, client, hello.clone());
        let mut sent = 0;
        while let Some(datagram) = ends[1].handshakes.poll_transmit() {
            sent += datagram.packet.len();
        }
        assert!(sent > 0 && sent <= 3 * 1_200, "{sent} bytes for HELLO {attempt}");
    }
    // The certificate is 8 KB long and takes more than one HELLO.
    crate::network::run(&mut ends, START, 2_000 * MILLIS);
    crate::network::assert_connected(&mut ends);
    // As a client's certificate it takes several packets; no keys are installed before the last
    // one.
    let client = crate::certificates::negotiator(&ca.credentials("long"));
    let mut ends = [End::new(1, client), End::new(2, ca.negotiator("b"))];
    crate::network::connect(&mut ends, START);
    crate::network::assert_connected(&mut ends);
}

/// SEAL-14.
#[test]
fn under_load_a_client_must_show_a_cookie() {
    let limits = Limits { cookies_from: 4, in_progress: 8, peers: 10, ..Limits::default() };
    let mut server = End::with_limits(2, stub(0), limits);
    let at = server.address;
    for port in 100..140 {
        let (client, hello) = hello(port, at);
        server.receive(START, SocketAddr::from(([127, 0, 0, 1], port)), hello.packet);
        drop(client);
    }
    assert_eq!(server.handshakes.in_progress(), 4, "HANDSHAKE-2");
    assert_eq!(server.handshakes.counters().cookies_sent.get(), 36);
    while server.handshakes.poll_transmit().is_some() {}
    let ends = [End::with_limits(77, stub(7), limits), server];
    let mut ends = ends;
    crate::network::connect(&mut ends, MILLIS);
    crate::network::assert_connected(&mut ends);
    // A cookie is valid for its own address only.
    let (mut client, _) = hello(500, at);
    while client.poll_transmit().is_some() {}
    let mut retry = None;
    let (mut other, first) = hello(501, at);
    ends[1].receive(2 * MILLIS, SocketAddr::from(([127, 0, 0, 1], 501)), first.packet);
    while let Some(datagram) = ends[1].handshakes.poll_transmit() {
        retry = Some(datagram.packet);
    }
    let mut retry = retry.unwrap();
    assert_eq!(retry[11], SealKind::Retry as u8);
    other.handle(2 * MILLIS, at, None, &mut retry);
    let with_cookie = other.poll_transmit().unwrap();
    let count = ends[1].handshakes.in_progress();
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], 502));
    ends[1].receive(2 * MILLIS, elsewhere, with_cookie.packet.clone());
    assert_eq!(ends[1].handshakes.in_progress(), count);
    // It is valid for two to four minutes.
    let minutes = 60_000 * MILLIS;
    let home = SocketAddr::from(([127, 0, 0, 1], 501));
    ends[1].receive(5 * minutes, home, with_cookie.packet.clone());
    assert_eq!(ends[1].handshakes.in_progress(), count, "too late");
}

/// SEAL-14.
#[test]
fn the_rate_of_handshakes_with_clients_without_a_cookie_is_limited() {
    let limits = Limits { unproven_per_second: 10, ..Limits::default() };
    let mut server = End::with_limits(2, stub(0), limits);
    let at = server.address;
    let flood = |server: &mut End, now, ports: std::ops::Range<u16>| {
        for port in ports {
            let (_, hello) = hello(port, at);
            server.receive(now, SocketAddr::from(([127, 0, 0, 1], port)), hello.packet);
        }
    };
    flood(&mut server, START, 100..140);
    assert_eq!(server.handshakes.in_progress(), 10);
    assert_eq!(server.handshakes.counters().cookies_sent.get(), 30);
    flood(&mut server, 500 * MILLIS, 200..240);
    assert_eq!(server.handshakes.in_progress(), 15);
    server.handshakes.handle_timeout(60_000 * MILLIS);
    assert_eq!(server.handshakes.in_progress(), 0, "nothing is left of them");
    assert_eq!(server.handshakes.next_timeout(), None);
}

/// At most one NO_KEY is sent per address and 100 ms. It is no longer than the packet that it
/// answers, and accepted only for packets that were sent.
#[test]
fn a_missing_key_is_reported_rarely_and_believed_rarely() {
    let mut server = End::new(2, stub(0));
    let from = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut sealed = vec![0; 60];
    (sealed[11], sealed[13]) = (0x10, 0x20);
    for n in 0..20u32 {
        server.receive(n * 10 * MILLIS, from, sealed.clone());
    }
    let mut answers = 0;
    while let Some(datagram) = server.handshakes.poll_transmit() {
        assert!(datagram.packet.len() <= sealed.len());
        answers += 1;
    }
    assert_eq!(answers, 2);
    let mut ends = [End::new(1, stub(1)), server];
    crate::network::connect(&mut ends, 1_000 * MILLIS);
    let peer = ends[1].address;
    let no_key = |number: u64| {
        let mut packet = vec![0; 28];
        apus_wire::SealedHeader::emit(SealKind::NoKey, (2, 1), 0, 0, &mut packet);
        apus_wire::SealedHeader::seal(&mut packet, number, false);
        packet
    };
    let last = 1 + (0..10).map(|_| ends[0].seal(b"a request")).count() as u64;
    for none in [last + 1, 419, 1 << 40] {
        ends[0].receive(2_000 * MILLIS, peer, no_key(none));
        assert_eq!(ends[0].handshakes.in_progress(), 0, "no packet had number {none}");
    }
    ends[0].receive(2_000 * MILLIS, peer, no_key(last - 1));
    assert_eq!(ends[0].handshakes.in_progress(), 1);
    crate::network::assert_connected(&mut ends);
}

/// SEAL-9: the answer to a HELLO that was forged in a server's name is not taken for a client's
/// HELLO. Otherwise the two servers would answer each other forever.
#[test]
fn two_servers_do_not_answer_each_other() {
    let [mut first, mut second] = [1, 2].map(|port| End::new(port, stub(u64::from(port))));
    let (_, forged) = hello(9, first.address);
    first.receive(START, second.address, forged.packet);
    let answers: Vec<_> = std::iter::from_fn(|| first.handshakes.poll_transmit()).collect();
    assert!(!answers.is_empty());
    for answer in answers {
        assert_eq!(answer.to, second.address);
        second.receive(START, first.address, answer.packet);
    }
    assert_eq!(second.handshakes.poll_transmit(), None);
}

/// SEAL-13: a HELLO forged in a client's name does not keep a server without that client's keys
/// from sending NO_KEY.
#[test]
fn a_forged_hello_does_not_hold_up_new_keys() {
    let mut ends = [1, 2].map(|port| End::new(port, stub(u64::from(port))));
    crate::network::connect(&mut ends, START);
    crate::network::assert_connected(&mut ends);
    let before = ends[0].session();
    ends[1] = End::new(2, stub(7));
    let (client, server) = (ends[0].address, ends[1].address);
    let (_, forged) = hello(9, server);
    ends[1].receive(START, client, forged.packet);
    while ends[1].handshakes.poll_transmit().is_some() {}
    let mut packet = vec![0; apus_wire::HEADER_LEN];
    (packet[11], packet[13]) = (0x14, 0x11);
    let tag = ends[0].keys.as_mut().unwrap().0.seal(&mut packet, &mut []).unwrap();
    packet.extend(tag);
    ends[1].receive(START, client, packet);
    crate::network::run(&mut ends, START, 100 * MILLIS);
    crate::network::assert_connected(&mut ends);
    assert_ne!(ends[0].session(), before);
}
