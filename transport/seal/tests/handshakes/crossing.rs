//! Two ends start handshakes with each other, at the same time or although they have keys: they
//! agree on keys once, and keep them.

use crate::network::{End, MILLIS, START, assert_connected, connect, run, run_bent};
use apus_seal::Datagram;
use apus_seal::stub::{StubNegotiator, StubPolicy};
use apus_wire::{SealKind, SealedHeader};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

fn ends(seed: u64) -> [End; 2] {
    [1, 2].map(|port| {
        let policy = StubPolicy { name: u64::from(port), trust: 2, limit: 1 << 30 };
        End::new(port, Arc::new(StubNegotiator::new(policy, 2 * seed + u64::from(port))))
    })
}

fn kind(datagram: &Datagram) -> Option<SealKind> {
    SealedHeader::parse(&datagram.packet).expect("a packet of version 2").kind
}

/// Asserts that both ends have the same keys and had no others before.
fn assert_agreed_once(ends: &mut [End; 2]) {
    assert_connected(ends);
    assert!(ends.iter().all(|end| end.earlier.is_empty()), "keys were replaced");
}

/// HANDSHAKE-3, SEAL-15: the second end answers a HELLO, the answer is lost, and the second end
/// wants keys itself while the HELLO is repeated. If its own handshake proceeded as well, each
/// handshake would lead to keys at its client, calls would start under both, and one of them would
/// end: its calls failed as if their server had been restarted.
#[test]
fn an_end_that_answers_a_handshake_begins_none_beside_it() {
    for seed in 0..16 {
        let mut ends = ends(seed);
        let [first, second] = [ends[0].address, ends[1].address];
        ends[0].handshakes.want(START, second, None).unwrap();
        run_bent(&mut ends, START, 5 * MILLIS, |_, datagram| {
            if datagram.to == first { vec![] } else { vec![datagram] }
        });
        let mut again = Vec::new();
        run_bent(&mut ends, 20 * MILLIS, 20 * MILLIS, |_, datagram| {
            again.push(datagram);
            vec![]
        });
        assert_eq!(again.iter().map(kind).collect::<Vec<_>>(), [Some(SealKind::Hello)]);
        ends[1].handshakes.want(20 * MILLIS, first, None).unwrap();
        // The second end's packets arrive first, then the HELLO, whose answer precedes all later
        // packets.
        let mut late = Vec::new();
        run_bent(&mut ends, 20 * MILLIS, 21 * MILLIS, |_, datagram| {
            if datagram.to == second {
                late.push(datagram);
                return vec![];
            }
            vec![datagram]
        });
        for datagram in again.into_iter().chain(late) {
            ends[1].receive(21 * MILLIS, first, datagram.packet);
        }
        run(&mut ends, 21 * MILLIS, 3_000 * MILLIS);
        assert_agreed_once(&mut ends);
    }
}

/// SEAL-15: the second end answers a HELLO, the answer is lost, and the second end wants keys
/// itself. It answers the HELLO repeated after 20 ms, whichever id is higher. (Earlier, half of the
/// ends waited 200 ms for the second end's own HELLO.)
#[test]
fn a_repeated_hello_is_answered_although_its_receiver_wants_keys_itself() {
    for seed in 0..16 {
        let mut ends = ends(seed);
        let [first, second] = [ends[0].address, ends[1].address];
        ends[0].handshakes.want(START, second, None).unwrap();
        let mut lost = 0;
        run_bent(&mut ends, START, 5 * MILLIS, |_, datagram| {
            lost += u32::from(datagram.to == first);
            if datagram.to == first { vec![] } else { vec![datagram] }
        });
        assert_ne!(lost, 0, "the HELLO was answered");
        ends[1].handshakes.want(5 * MILLIS, first, None).unwrap();
        run(&mut ends, 5 * MILLIS, 30 * MILLIS);
        assert_agreed_once(&mut ends);
    }
}

/// HANDSHAKE-5, SEAL-17: any host can send a NO_KEY, and a damaged packet leads to one as well.
#[test]
fn keys_that_both_ends_have_outlive_the_report_of_a_missing_key() {
    for lost in [None, Some(SealKind::Ready)] {
        let mut ends = ends(1);
        let [first, second] = [ends[0].address, ends[1].address];
        connect(&mut ends, START);
        let session = ends[0].session();
        let mut damaged = ends[0].seal(b"a request");
        *damaged.last_mut().unwrap() ^= 1;
        ends[1].receive(2_000 * MILLIS, first, damaged);
        // The READY that proves possession of the keys may be lost; then any packet proves it.
        let packet = ends[1].seal(b"a response");
        let mut packet = Some(Datagram { to: first, from: None, packet });
        run_bent(&mut ends, 2_000 * MILLIS, 2_500 * MILLIS, |_, datagram| match kind(&datagram) {
            it @ Some(SealKind::Ready) if it == lost => packet.take().into_iter().collect(),
            _ => vec![datagram],
        });
        assert_eq!(ends[0].handshakes.counters().no_keys_believed.get(), 1);
        assert_eq!(ends[0].session(), session);
        assert_agreed_once(&mut ends);
        assert!(
            ends[0].handshakes.want(2_500 * MILLIS, second, None).is_ok(),
            "nothing has failed"
        );
    }
}

/// A datagram in flight: its receiver, and its bytes.
type OnItsWay = (usize, Vec<u8>);

/// Delay of a packet, and of its second copy if there is one, in milliseconds.
type Fate = (u32, Option<u32>);

/// A schedule by which two ends start handshakes with each other.
#[derive(Debug)]
struct Crossing {
    seed: u64,
    /// When each wants keys, in milliseconds.
    wants: [u32; 2],
    /// When a HELLO from an earlier life of each end arrives, in milliseconds.
    strays: [Option<u32>; 2],
    /// Delays of the first packets; later packets arrive at once.
    fates: Vec<Fate>,
    /// Indices of lost packets.
    lost: BTreeSet<usize>,
}

impl Crossing {
    /// Returns both ends after `until` milliseconds.
    fn run(&self, until: u32) -> [End; 2] {
        let (mut ends, earlier) = (ends(self.seed), ends(self.seed + (1 << 32)));
        let addresses = [ends[0].address, ends[1].address];
        let mut on_their_way: BTreeMap<(Duration, usize), OnItsWay> = BTreeMap::new();
        for (own, mut end) in earlier.into_iter().enumerate() {
            end.handshakes.want(START, addresses[1 - own], None).unwrap();
            let hello = end.poll_transmit().expect("a HELLO").packet;
            if let Some(at) = self.strays[own] {
                on_their_way.insert((at * MILLIS, usize::MAX - own), (1 - own, hello));
            }
        }
        let mut sent = 0;
        for now in (0..until).map(|millis| millis * MILLIS) {
            while let Some(entry) = on_their_way.first_entry().filter(|entry| entry.key().0 <= now)
            {
                let (to, packet) = entry.remove();
                ends[to].receive(now, addresses[1 - to], packet);
            }
            for (own, end) in ends.iter_mut().enumerate() {
                if now == self.wants[own] * MILLIS && end.keys.is_none() {
                    end.handshakes.want(now, addresses[1 - own], None).unwrap();
                }
                end.handshakes.handle_timeout(now);
                end.take_events();
                while let Some(datagram) = end.poll_transmit() {
                    let (delay, repeated) = self.fates.get(sent).copied().unwrap_or((0, None));
                    let copies = [Some(delay), repeated];
                    for (copy, delay) in copies.into_iter().flatten().enumerate() {
                        if !self.lost.contains(&sent) {
                            let key = (now + delay * MILLIS, 2 * sent + copy);
                            on_their_way.insert(key, (1 - own, datagram.packet.clone()));
                        }
                    }
                    sent += 1;
                }
            }
        }
        ends
    }
}

/// HANDSHAKE-3, SEAL-15. Each end lets another handshake go first: one end the present handshake of
/// its peer, the other end a handshake of an earlier life of its peer. (Seed 4200050: both
/// proceeded after the same second and answered each other, since neither rests twice.)
#[test]
fn two_ends_that_have_let_others_go_first_agree_once() {
    for seed in 0..64 {
        for strays in [[Some(0), None], [None, Some(0)], [Some(0), Some(1)]] {
            let (wants, fates, lost) = ([0, 0], vec![(5, None); 40], BTreeSet::new());
            let mut ends = Crossing { seed, wants, strays, fates, lost }.run(3_000);
            assert_agreed_once(&mut ends);
        }
    }
}

/// HANDSHAKE-3, SEAL-15. An end that answered at the end of its rest would proceed before the peer
/// has read the answer, and its first packets could overtake it.
#[test]
fn an_end_answers_no_lower_id_at_the_end_of_its_rest() {
    let mut fates = vec![(0, None); 40];
    let delays = [(2, 13), (7, 8), (9, 5), (13, 2), (17, 1), (19, 20), (21, 27), (24, 5), (25, 8)];
    for (sent, delay) in delays {
        fates[sent].0 = delay;
    }
    let (wants, strays, lost) = ([14; 2], [Some(154), Some(160)], [0, 4].into());
    let crossing = Crossing { seed: 3_623_276_827, wants, strays, fates, lost };
    assert_agreed_once(&mut crossing.run(4_000));
}

proptest! {
    /// HANDSHAKE-3, SEAL-15: whenever the two ends start, and whatever loss, delay, duplication and
    /// reordering the first packets suffer, provided that one of the first FINISH packets arrives.
    #[test]
    fn two_ends_agree_once_however_their_first_packets_travel(
        seed in any::<u32>(),
        wants in prop::array::uniform2(0u32..40),
        fates in prop::collection::vec((0u32..30, prop::option::weighted(0.2, 0u32..30)), 14),
        lost in prop::collection::btree_set(0usize..14, 0..3),
    ) {
        let crossing = Crossing { seed: u64::from(seed), wants, strays: [None; 2], fates, lost };
        assert_agreed_once(&mut crossing.run(2_000));
    }

    /// HANDSHAKE-3, SEAL-15: also if handshakes of earlier lives go first for a time.
    #[test]
    fn two_ends_agree_once_whichever_handshakes_go_first(
        seed in any::<u32>(),
        wants in prop::array::uniform2(0u32..40),
        strays in prop::array::uniform2(prop::option::weighted(0.8, 0u32..1_250)),
        fates in prop::collection::vec((0u32..30, prop::option::weighted(0.2, 0u32..30)), 40),
        lost in prop::collection::btree_set(0usize..8, 0..3),
    ) {
        let crossing = Crossing { seed: u64::from(seed), wants, strays, fates, lost };
        assert_agreed_once(&mut crossing.run(4_000));
    }
}
