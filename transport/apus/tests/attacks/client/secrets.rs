//! Secrets: numbers that an endpoint sends must not reveal the numbers that it sends to others.

use super::attacker::receive;
use super::splitmix::{Splitmix, find_generator};
use crate::namespace::in_namespace;
use crate::packets::{Envelope, first_contact};
use crate::{ATTACKER, address, endpoint, v4};
use apus_wire::{Flags, Role};
use std::collections::HashSet;
use std::net::UdpSocket;

/// A client that restarts any number of times is offered a session each time.
#[test]
fn offered_sessions_tell_nothing_about_others() {
    in_namespace("client::secrets::offered_sessions_tell_nothing_about_others", || {
        let server = endpoint(crate::SERVER);
        let socket = UdpSocket::bind(ATTACKER).unwrap();
        let (from, to) = (v4(socket.local_addr().unwrap()), address(&server));
        let offers: Vec<u64> = (1..=128)
            .map(|claim| {
                let fields = first_contact(claim);
                let request = Envelope { from, to, sender: Role::Client, id: 2 * claim, fields };
                socket.send_to(&request.data(b"?"), to).unwrap();
                let (fields, _) = receive(&socket);
                assert!(fields.flags.contains(Flags::SESSION.with(Flags::CONFIRM)));
                fields.incarnation
            })
            .collect();
        assert!(offers.windows(2).all(|pair| !is_from_splitmix(pair[0], pair[1])));
        let different: HashSet<u64> = offers.iter().copied().collect();
        assert_eq!(different.len(), offers.len());
        // Neither half repeats, as a counter's would.
        for shift in [0, 24] {
            let halves: HashSet<u64> =
                offers.iter().map(|offer| offer >> shift & 0xff_ffff).collect();
            assert!(halves.len() > 120, "{offers:x?}");
        }

        // The attack works where there is a weakness.
        let mut weak = Splitmix::new(0x5eed);
        let [first, second] = [weak.next(), weak.next()];
        assert!(is_from_splitmix(first >> 16, second >> 16));
        assert!(is_from_splitmix(first & 0xffff_ffff_ffff, second & 0xffff_ffff_ffff));
    });
}

/// Whether both sessions are the same 48 bits of two outputs of SplitMix64, one after the other.
fn is_from_splitmix(first: u64, second: u64) -> bool {
    const MASK: u64 = (1 << 48) - 1;
    let upper =
        find_generator((0..1 << 16).map(|low| first << 16 | low), |next| next >> 16 == second);
    let lower =
        find_generator((0..1 << 16).map(|high| high << 48 | first), |next| next & MASK == second);
    upper || lower
}

/// A server that is called once by each of many clients.
#[test]
fn a_first_request_tells_nothing_about_others() {
    in_namespace("client::secrets::a_first_request_tells_nothing_about_others", || {
        let servers = [ATTACKER, ATTACKER].map(|address| UdpSocket::bind(address).unwrap());
        let mut seen = HashSet::new();
        for _ in 0..64 {
            let client = endpoint(crate::CLIENT);
            let [(fields, first), (_, other)] = servers.each_ref().map(|server| {
                client.send(server.local_addr().unwrap(), "called", 0).unwrap();
                receive(server)
            });
            assert!(!ids_are_from_splitmix(fields.incarnation, first), "{fields:x?} {first:x}");
            assert!(first.abs_diff(other) > 1 << 32, "{first:x} and {other:x}: ids of two servers");
            assert!(seen.insert(fields.incarnation) && seen.insert(first) && seen.insert(other));
        }

        // The attack works where there is a weakness.
        let mut weak = Splitmix::new(0x5eed);
        let incarnation = weak.next() & 0xffff_ffff;
        assert!(ids_are_from_splitmix(incarnation, weak.next() >> 2 & !1 | 1 << 61));
    });
}

/// Whether the id is the output of SplitMix64 that follows the one that has the incarnation in its
/// lower half.
fn ids_are_from_splitmix(incarnation: u64, id: u64) -> bool {
    // Four bits of the output are not in the id: 0 to 2, and 63.
    (0..16u64).any(|lost| {
        let output = (id & !(1 << 61)) << 2 | lost & 7 | lost >> 3 << 63;
        Splitmix::after(output).previous() & 0xffff_ffff == incarnation
    })
}
