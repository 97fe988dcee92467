//! Retaining only the first bytes of messages changes no packet, event or counter.
//!
//! One seed is run twice, once with transports that retain whole messages and once with transports
//! that retain only the first bytes. Requirement CAP-15: their outputs are the same at any time,
//! except for the payload of events.

use crate::dice::Dice;
use crate::scenarios::traffic;
use crate::world::{Faults, Given, World};
use apus_proto::{Config, DropReason, Event, Metrics};
use bytes::Bytes;

/// Limits that the traffic reaches, so that the counted bytes decide which packets are dropped.
fn config() -> Config {
    Config::builder()
        .max_message(300_000)
        .max_receive_bytes(350_000)
        .max_receive_bytes_per_peer(320_000)
        .cutoffs_min_messages(100)
        .cutoffs_interval_usecs(10_000)
        .peer_idle_secs_min(1)
        .peer_idle_secs_max(20)
        .build()
        .unwrap()
}

/// The outputs of all transports with their times, in a world whose transports keep `keep` bytes of
/// each message.
fn log(keep: usize, seed: u64, faults: Faults) -> Vec<(u64, usize, Given)> {
    let mut world = World::keeping(keep, Dice::seeded(seed), 3, config(), faults);
    world.log = Some(Vec::new());
    traffic(&mut world, 400);
    world.heal();
    world.check_calls();
    world.check_nothing_is_left();
    world.log.unwrap()
}

/// The event with at most `keep` bytes of payload.
fn cut(given: &Given, keep: usize) -> Given {
    let cut = |payload: &Bytes| payload.slice(..payload.len().min(keep));
    match given {
        Given::Event(Event::Request { rpc, from, payload }) => {
            Given::Event(Event::Request { rpc: *rpc, from: *from, payload: cut(payload) })
        }
        Given::Event(Event::Response { rpc, cookie, payload }) => {
            Given::Event(Event::Response { rpc: *rpc, cookie: *cookie, payload: cut(payload) })
        }
        other => other.clone(),
    }
}

#[test]
fn nothing_shows_how_much_is_kept() {
    let faults = [
        Faults::default(),
        Faults { loss: 10, duplication: 10, delay: 20, ..Faults::default() },
        Faults { loss: 200, duplication: 100, delay: 200, crashes: true, ..Faults::default() },
    ];
    let mut counted = Vec::new();
    // The least that the world can do with, the middle of a packet, and the middle of long
    // messages.
    for (seed, (faults, keep)) in (70..).zip(faults.into_iter().zip([8, 1_000, 50_000])) {
        let whole = log(usize::MAX, seed, faults);
        let first = log(keep, seed, faults);
        for (i, ((at, host, whole), first)) in whole.iter().zip(&first).enumerate() {
            let whole = (*at, *host, cut(whole, keep));
            assert!(whole == *first, "seed {seed}, {i}: {whole:?} became {first:?}");
        }
        assert_eq!(whole.len(), first.len(), "seed {seed}");
        let cut = first.iter().zip(&whole).filter(|(first, whole)| first != whole).count();
        assert!(cut > 10, "seed {seed}: {cut} messages are shorter");
        counted.extend(first.into_iter().filter_map(|(_, _, given)| match given {
            Given::Metrics(metrics) => Some(metrics),
            _ => None,
        }));
    }
    check_that_much_happened(&counted);
}

/// The compared runs have met every limit and every cure.
fn check_that_much_happened(counted: &[Box<Metrics>]) {
    let most = |count: fn(&Metrics) -> u64| counted.iter().map(|metrics| count(metrics)).max();
    assert!(most(|metrics| metrics.dropped(DropReason::NoBuffers)) > Some(0));
    assert!(most(|metrics| metrics.admission.challenges_sent) > Some(0));
    assert!(most(|metrics| metrics.recovery.gaps_created) > Some(0));
    assert!(most(|metrics| metrics.recovery.resent_packets_used) > Some(0));
    assert!(most(|metrics| metrics.scheduling.granted_bytes) > Some(0));
    assert!(most(|metrics| metrics.scheduling.cutoffs_renewed) > Some(0));
    assert!(most(|metrics| metrics.admission.sessions_begun) > Some(0));
}
