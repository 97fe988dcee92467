//! Floods of HELLOs: with forged addresses, in the name of a peer, and from one real host.

use crate::certificates::Ca;
use crate::network::{End, MILLIS, START, assert_connected, connect};
use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_seal::{Handshakes, Limits, Negotiator};
use apus_wire::{SealKind, SealedHeader};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const POLICY: StubPolicy = StubPolicy { name: 1, trust: 2, limit: 1 << 30 };

fn stub(seed: u64) -> Arc<StubNegotiator> {
    Arc::new(StubNegotiator::new(POLICY, seed))
}

/// Returns a client's HELLO to `server`.
fn hello(negotiator: Arc<dyn Negotiator>, server: SocketAddr) -> Vec<u8> {
    let mut client = Handshakes::new(negotiator, 9, Limits::default(), START);
    client.want(START, server, None).unwrap();
    client.poll_transmit().unwrap().packet
}

/// Returns `hello` as the start of another handshake.
fn with_id(hello: &[u8], id: u64) -> Vec<u8> {
    let mut hello = hello.to_vec();
    hello[20..28].copy_from_slice(&(2 * id).to_be_bytes());
    hello
}

/// Passes packets between two ends at `now` until there are none. Packets to others are lost.
fn exchange(now: Duration, ends: [&mut End; 2]) {
    let [first, second] = ends;
    let mut queue = VecDeque::new();
    loop {
        for end in [&mut *first, &mut *second] {
            end.handshakes.handle_timeout(now);
            end.take_events();
            while let Some(datagram) = end.poll_transmit() {
                queue.push_back((end.address, datagram));
            }
        }
        if queue.is_empty() {
            return;
        }
        while let Some((from, datagram)) = queue.pop_front() {
            for end in [&mut *first, &mut *second] {
                if end.address == datagram.to {
                    end.receive(now, from, datagram.packet.clone());
                }
            }
        }
    }
}

/// Has a server receive `per_second` packets that `forge` makes, for three seconds, and a new
/// client call it every 100 ms. Each client must have keys at once.
fn assert_new_clients_are_served(
    negotiator: impl Fn(u16) -> Arc<dyn Negotiator>,
    per_second: u64,
    mut forge: impl FnMut(u64) -> (SocketAddr, Vec<u8>),
) {
    let mut server = End::new(2, negotiator(2));
    let mut forged = 0;
    for millis in 0..3_000 {
        let now = u32::try_from(millis).unwrap() * MILLIS;
        while forged * 1_000 < per_second * millis {
            let (from, packet) = forge(forged);
            server.receive(now, from, packet);
            forged += 1;
        }
        if millis % 100 == 99 {
            let port = 1_000 + u16::try_from(millis).unwrap();
            let mut client = End::new(port, negotiator(port));
            client.handshakes.want(now, server.address, None).unwrap();
            exchange(now, [&mut client, &mut server]);
            assert!(client.session().is_some(), "{per_second}/s: no keys at {millis} ms");
        }
    }
}

/// An address of another host for each number.
fn elsewhere(number: u64) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from_bits(0x0b00_0000 + number as u32).into(), 7)
}

/// SEAL-14: found by attack. Forged addresses compete with no real one.
#[test]
fn forged_addresses_keep_no_new_client_out() {
    let hello = hello(stub(9), SocketAddr::from(([127, 0, 0, 1], 2)));
    for per_second in [800, 4_000, 12_000] {
        assert_new_clients_are_served(
            |port| stub(port.into()),
            per_second,
            |number| (elsewhere(number), with_id(&hello, number)),
        );
    }
}

/// SEAL-14: found by attack. What is no ClientHello costs no token.
#[test]
fn garbage_keeps_no_new_client_out() {
    let ca = Ca::new();
    let own = ca.negotiator("all");
    let server = SocketAddr::from(([127, 0, 0, 1], 2));
    let mut garbage = hello(own.clone(), server);
    // The first byte of the piece.
    garbage[31] = 0x7f;
    assert_new_clients_are_served(
        |_| own.clone(),
        2_000,
        |number| (elsewhere(number), with_id(&garbage, number)),
    );
    let mut end = End::new(2, own);
    for number in 0..1_000 {
        end.receive(START, elsewhere(number), with_id(&garbage, number));
    }
    assert_eq!(end.handshakes.counters().hellos_dropped.get(), 1_000);
    assert_eq!(end.handshakes.poll_transmit(), None, "nothing is answered");
}

/// SEAL-14: found by attack. Keys are no ticket: a HELLO in the name of a peer with keys takes a
/// token as well, and FAILED, which anyone can send, does not free the place.
#[test]
fn hellos_in_the_name_of_a_peer_are_bounded_whatever_failed_says() {
    let mut ends = [End::new(1, stub(1)), End::new(2, stub(2))];
    connect(&mut ends, START);
    assert_connected(&mut ends);
    let (peer, server) = (ends[0].address, ends[1].address);
    let recorded = hello(stub(9), server);
    let mut answers = 0;
    for number in 0..4_000 {
        let now = 10 * MILLIS + u32::try_from(number).unwrap() * MILLIS;
        ends[1].receive(now, peer, with_id(&recorded, number));
        let mut failed = vec![0; apus_wire::HEADER_LEN];
        SealedHeader::emit(SealKind::Failed, (1, 2), 1, 2 * number, &mut failed);
        ends[1].receive(now, peer, failed);
        while let Some(datagram) = ends[1].handshakes.poll_transmit() {
            let header = SealedHeader::parse(&datagram.packet).unwrap();
            answers += u32::from(header.kind == Some(SealKind::Hello));
        }
    }
    assert!(answers <= 256, "{answers} handshakes were begun");
    assert_connected(&mut ends);
}

/// SEAL-14: a host that has a cookie for each of its ports leaves tokens to others.
#[test]
fn a_flooding_host_with_cookies_keeps_no_new_client_out() {
    let mut server = End::new(2, stub(2));
    let at = server.address;
    let mut flooding = 0_u16;
    for millis in 0..3_000 {
        let now = millis * MILLIS;
        for _ in 0..4 {
            flooding += 1;
            let mut client = End::new(flooding, stub(flooding.into()));
            client.address = SocketAddr::from(([10, 0, 0, 7], flooding));
            client.handshakes.want(now, at, None).unwrap();
            exchange(now, [&mut client, &mut server]);
        }
        if millis % 100 == 99 {
            let mut client = End::new(7, stub(u64::from(millis)));
            client.address = SocketAddr::from(([10, 0, 1, (millis / 100) as u8], 7));
            client.handshakes.want(now, at, None).unwrap();
            exchange(now, [&mut client, &mut server]);
            assert!(client.session().is_some(), "no keys at {millis} ms");
        }
    }
}

/// HANDSHAKE-2: one host has an eighth of the peers at most.
#[test]
fn one_host_does_not_have_all_peers() {
    let limits = Limits { peers: 16, ..Limits::default() };
    let mut server = End::with_limits(2, stub(2), limits);
    let at = server.address;
    let mut admitted = |host: u8| {
        let tries = (1..=20).filter(|port| {
            let mut client = End::new(*port, stub(u64::from(host) << 16 | u64::from(*port)));
            client.address = SocketAddr::from(([10, 0, 0, host], *port));
            client.handshakes.want(START, at, None).unwrap();
            exchange(START, [&mut client, &mut server]);
            client.session().is_some()
        });
        tries.count()
    };
    assert_eq!((admitted(1), admitted(2)), (2, 2));
}
