//! Later generations of keys (SEAL-4).

use crate::network::{End, START, assert_connected, connect};
use apus_seal::stub::{StubKeys, StubNegotiator, StubPolicy};
use apus_seal::{Exhausted, OpenError, Opener, REKEY_AFTER, Sealer, WINDOW, association};
use apus_wire::HEADER_LEN;
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Returns both ends of an association whose keys may seal `limit` packets.
fn pair(limit: u64) -> [(Sealer, Opener); 2] {
    [true, false].map(|is_client| {
        let keys = StubKeys::new(99, is_client, limit);
        association(1 << 40, is_client, keys.pair(), Box::new(keys), START)
    })
}

fn seal(end: &mut (Sealer, Opener), payload: &[u8]) -> Result<Vec<u8>, Exhausted> {
    let mut packet = vec![0; HEADER_LEN];
    packet[13] = 0x11;
    packet.extend(payload);
    let (head, body) = packet.split_at_mut(HEADER_LEN);
    let tag = end.0.seal(head, body)?;
    packet.extend(tag);
    Ok(packet)
}

fn open(end: &mut (Sealer, Opener), packet: &[u8]) -> Result<usize, OpenError> {
    end.1.open(&mut packet.to_vec())
}

#[test]
fn keys_are_replaced_by_count_and_the_peer_follows() {
    let mut ends = pair(8);
    for n in 0..100u8 {
        for sender in [0, 1] {
            let packet = seal(&mut ends[sender], &[n]).unwrap();
            assert_eq!(open(&mut ends[1 - sender], &packet), Ok(HEADER_LEN + 1));
        }
    }
    assert!(ends[0].0.rekeys() > 20);
    assert!(ends[0].0.rekeys().abs_diff(ends[1].0.rekeys()) <= 1, "PHASE-1");
}

#[test]
fn keys_are_replaced_after_an_hour() {
    let mut ends = pair(1 << 30);
    ends[0].0.rekey_if_old(REKEY_AFTER - Duration::from_nanos(1));
    assert_eq!(ends[0].0.rekeys(), 0);
    ends[0].0.rekey_if_old(REKEY_AFTER);
    assert_eq!(ends[0].0.rekeys(), 1);
    let packet = seal(&mut ends[0], b"a").unwrap();
    assert_eq!(open(&mut ends[1], &packet), Ok(HEADER_LEN + 1));
    let back = seal(&mut ends[1], b"a").unwrap();
    assert_eq!(ends[1].0.rekeys(), 1, "it follows");
    assert_eq!(open(&mut ends[0], &back), Ok(HEADER_LEN + 1));
}

/// PHASE-2: the key's limit holds even if the peer never answers.
#[test]
fn a_key_ends_at_its_limit() {
    let mut ends = pair(8);
    let sealed = (0..100).take_while(|_| seal(&mut ends[0], b"a").is_ok()).count();
    // The first key and the second; the peer has opened no packet of the second.
    assert_eq!(sealed, 4 + 8);
}

/// PHASE-3.
#[test]
fn an_old_key_opens_late_packets_for_a_while_and_no_later_ones() {
    let mut ends = pair(1 << 30);
    let late: Vec<_> = (0..3).map(|_| seal(&mut ends[0], b"late").unwrap()).collect();
    ends[0].0.rekey_if_old(REKEY_AFTER);
    let first = seal(&mut ends[0], b"new").unwrap();
    assert!(open(&mut ends[1], &first).is_ok());
    assert!(open(&mut ends[1], &late[0]).is_ok());
    // A host with the old key forges a packet with a new number.
    let old = StubKeys::new(99, true, 1).pair().local;
    let forge = |number: u64| {
        let mut packet = vec![0; HEADER_LEN];
        packet[13] = 0x11;
        apus_wire::SealedHeader::seal(&mut packet, number, false);
        let tag = old.seal(number, &packet, &mut []).unwrap();
        packet.extend(tag);
        packet
    };
    assert_eq!(open(&mut ends[1], &forge(50)), Err(OpenError::Forged));
    for _ in 0..WINDOW - 3 {
        let packet = seal(&mut ends[0], b"new").unwrap();
        assert!(open(&mut ends[1], &packet).is_ok());
    }
    assert!(open(&mut ends[1], &late[1]).is_ok(), "just inside of the window");
    for _ in 0..2 {
        let packet = seal(&mut ends[0], b"new").unwrap();
        assert!(open(&mut ends[1], &packet).is_ok());
    }
    assert!(open(&mut ends[1], &late[2]).is_err());
}

#[test]
fn forged_packets_and_garbage_are_refused() {
    let mut ends = pair(1 << 30);
    let packet = seal(&mut ends[0], b"content").unwrap();
    for at in 0..packet.len() {
        for bit in 0..8 {
            let mut changed = packet.clone();
            changed[at] ^= 1 << bit;
            assert!(open(&mut ends[1], &changed).is_err(), "bit {bit} of byte {at}");
        }
    }
    for len in 0..packet.len() {
        assert!(open(&mut ends[1], &packet[..len]).is_err(), "cut to {len}");
    }
    assert!(open(&mut ends[1], &packet).is_ok(), "nothing of that has taken its number");
}

proptest! {
    /// With any loss, delay and duplication, each packet is opened at most once, and both ends can
    /// always communicate afterwards.
    #[test]
    fn associations_survive_any_network(steps in prop::collection::vec((0u8..4, 0usize..64), 1..600)) {
        let mut ends = pair(1 << 30);
        let mut time = START;
        let mut flying: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut opened = std::collections::BTreeSet::new();
        for (kind, which) in steps {
            match kind {
                0 | 1 => {
                    let sender = usize::from(kind);
                    if which == 0 {
                        time += REKEY_AFTER;
                        ends[sender].0.rekey_if_old(time);
                    }
                    if let Ok(packet) = seal(&mut ends[sender], &[kind]) {
                        flying.push((1 - sender, packet));
                    }
                }
                2 if !flying.is_empty() => {
                    let (to, packet) = flying[which % flying.len()].clone();
                    if open(&mut ends[to], &packet).is_ok() {
                        prop_assert!(opened.insert(packet), "opened twice");
                    }
                }
                _ if !flying.is_empty() => drop(flying.swap_remove(which % flying.len())),
                _ => {}
            }
        }
        let before = ends[0].0.rekeys();
        for _ in 0..40 {
            time += REKEY_AFTER;
            ends[0].0.rekey_if_old(time);
            for sender in [0, 1] {
                let packet = seal(&mut ends[sender], b"x").unwrap();
                prop_assert!(open(&mut ends[1 - sender], &packet).is_ok());
            }
        }
        prop_assert!(ends[0].0.rekeys() >= before + 2);
    }
}

#[test]
fn handshakes_of_the_stub_lead_to_keys_and_their_limits_hold() {
    let policy = StubPolicy { name: 5, trust: 6, limit: 32 };
    let stub = |seed| Arc::new(StubNegotiator::new(policy, seed));
    let mut ends = [End::new(1, stub(1)), End::new(2, stub(2))];
    connect(&mut ends, START);
    for _ in 0..200 {
        assert_connected(&mut ends);
    }
    assert!(ends[0].keys.as_ref().unwrap().0.rekeys() > 5);
}
