//! Grants: senders that announce what they do not send, or hold what they were granted.
//! Requirements GRANT-3, GRANT-10, GRANT-21 and BAD-11.
//!
//! Each test measures calls that need GRANTs without the attack and with it. The bar is that of
//! `apus-lab lab hostile`: all are served, none in more than three times its time.

use crate::world::{Conduct, SERVER, Sign, World};
use apus_proto::{Config, DropReason, FailureKind};
use std::time::Duration;

const MB: usize = 1 << 20;
const MILLISECOND: Duration = Duration::from_millis(1);

/// The host of the honest endpoint, and a host of attackers.
const HONEST: u8 = 2;
const HOSTILE: u8 = 1;

/// How often a call may take as long as without an attack.
const SLOWER: u32 = 3;
/// Measured calls.
const CALLS: u32 = 6;

/// Signs of life, all of them without progress.
const SIGNS: [Sign; 4] = [Sign::Busy, Sign::Resend, Sign::Bytes(1), Sign::Again];

/// Time of the longest of some calls, with pauses between them that add up to several resend
/// intervals.
fn longest(world: &mut World, (client, server): (usize, usize), length: usize) -> Duration {
    let call = |_| {
        world.run(2 * MILLISECOND);
        world.time_of(client, server, length)
    };
    (0..CALLS).map(call).max().unwrap_or_default()
}

/// Asserts that requests of `length` bytes of an honest client are served in time while clients of
/// a host, at `ports` ports, behave like this, each with a request of `claim` bytes.
fn assert_harmless(config: &Config, ports: u16, conduct: Conduct, claim: usize, length: usize) {
    let mut world = World::new(config.clone());
    let honest = world.client(HONEST, 1, Conduct::Honest);
    world.time_of(honest, SERVER, 100);
    let undisturbed = longest(&mut world, (honest, SERVER), length);
    for port in 1..=ports {
        let attacker = world.client(HOSTILE, port, conduct);
        world.call(attacker, claim);
    }
    // A resend interval, and the check of it.
    world.run(10 * MILLISECOND);
    let took = longest(&mut world, (honest, SERVER), length);
    assert!(took <= SLOWER * undisturbed, "{took:?}, {undisturbed:?} without: {conduct:?}");
    let live = world.ends[SERVER].transport.live().server_rpcs;
    assert!(live >= ports.into(), "the attackers are still there");
}

/// As it was shown: one packet of 57 bytes, and BUSY. No call that needed a GRANT was served.
#[test]
fn invented_announcements_take_no_grants_from_others() {
    let config = Config::default();
    for (sign, ports) in SIGNS.into_iter().zip([1, 16, 1, 16]) {
        let claim = 8 * MB;
        let announced = claim as u32 - 1;
        let conduct = Conduct::Holds { announced, upto: 1, sign, every: 4 * MILLISECOND };
        assert_harmless(&config, ports, conduct, claim, MB);
    }
}

/// Invented announcements where senders state their backlog, so that the bytes of messages count
/// that need no GRANT according to their senders (GRANT-15).
#[test]
fn invented_announcements_take_no_grants_where_senders_state_their_backlog() {
    let config = Config::builder().informed_incoming(18_000).build().unwrap();
    for announced in [8 * MB as u32, 8 * MB as u32 - 1, 1] {
        let sign = Sign::Bytes(1);
        let conduct = Conduct::Holds { announced, upto: 1, sign, every: MILLISECOND };
        assert_harmless(&config, 8, conduct, 8 * MB, MB);
    }
}

/// As it was shown: 8 ports announce 1 byte, are granted what all may have in flight, and send
/// BUSY.
#[test]
fn granted_bytes_that_are_never_sent_take_no_grants_from_others() {
    let config = Config::default();
    for sign in SIGNS {
        let every = MILLISECOND;
        let conduct = Conduct::Holds { announced: 1, upto: 1, sign, every };
        assert_harmless(&config, 8, conduct, 900_000, 2 * MB);
    }
    let conduct = Conduct::Holds { announced: 1, upto: 1, sign: Sign::Busy, every: MILLISECOND };
    assert_harmless(&config, 16, conduct, 80_000, MB);
}

/// As much as counts for progress, each time just before the message would stall: 16 Mbit/s.
#[test]
fn slow_senders_of_one_host_leave_its_part_to_another_host() {
    let sign = Sign::Bytes(1_000);
    let conduct = Conduct::Holds { announced: 1, upto: 1, sign, every: 4 * MILLISECOND };
    assert_harmless(&Config::default(), 16, conduct, 900_000, 2 * MB);
    let informed = Config::builder().informed_incoming(18_000).build().unwrap();
    assert_harmless(&informed, 16, conduct, 900_000, 2 * MB);
}

/// New requests all the time: each holds what it was granted for a resend interval.
#[test]
fn new_requests_of_one_host_leave_its_part_to_another_host() {
    for announced in [1, 500_000] {
        let mut world = World::new(Config::default());
        let honest = world.client(HONEST, 1, Conduct::Honest);
        world.time_of(honest, SERVER, 100);
        let undisturbed = longest(&mut world, (honest, SERVER), 2 * MB);
        let sign = Sign::Busy;
        let conduct = Conduct::Holds { announced, upto: 1, sign, every: MILLISECOND };
        let attackers: Vec<usize> =
            (1..=16).map(|port| world.client(HOSTILE, port, conduct)).collect();
        for round in 0..4 + CALLS {
            for attacker in &attackers {
                world.call(*attacker, 500_000);
            }
            world.run(2 * MILLISECOND);
            let took = world.time_of(honest, SERVER, 2 * MB);
            // Before the first ones have stalled, the host is trusted.
            let is_in_time = round < 4 || took <= SLOWER * undisturbed;
            assert!(is_in_time, "{took:?}, {undisturbed:?} without");
        }
    }
}

/// Attackers at the address of the honest client, as behind a NAT: they hold grants for a resend
/// interval, and none later.
#[test]
fn what_makes_no_progress_holds_no_grants_even_within_a_host() {
    for sign in SIGNS {
        let mut world = World::new(Config::default());
        let honest = world.client(HONEST, 1, Conduct::Honest);
        world.time_of(honest, SERVER, 100);
        let undisturbed = longest(&mut world, (honest, SERVER), MB);
        for port in 2..=17 {
            let conduct = Conduct::Holds { announced: 1, upto: 1, sign, every: MILLISECOND };
            let attacker = world.client(HONEST, port, conduct);
            world.call(attacker, 900_000);
        }
        world.run(30 * MILLISECOND);
        let took = longest(&mut world, (honest, SERVER), MB);
        assert!(took <= SLOWER * undisturbed, "{took:?}, {undisturbed:?} without: {sign:?}");
    }
}

/// A server whose response does one of these stops no response of another server.
#[test]
fn responses_of_one_server_take_no_grants_from_those_of_another() {
    let lies = [(900_000 - 1, 1, MB), (1, 8, 2 * MB)];
    for (announced, servers, length) in lies {
        for sign in SIGNS {
            let mut world = World::new(Config::default());
            let client = world.client(HONEST, 1, Conduct::Honest);
            let honest = world.server(1, Conduct::Honest, length);
            world.time_of(client, honest, 100);
            let undisturbed = longest(&mut world, (client, honest), 100);
            let every = 2 * MILLISECOND;
            for host in 1..=servers {
                let conduct = Conduct::Holds { announced, upto: 1, sign, every };
                let hostile = world.server(1 + host, conduct, 900_000);
                world.call_to(client, hostile, 100);
            }
            // The servers are several hosts: what they hold counts until they make no progress, one
            // after the other.
            world.run(30 * MILLISECOND);
            let took = longest(&mut world, (client, honest), 100);
            assert!(took <= SLOWER * undisturbed, "{took:?}, {undisturbed:?} without: {sign:?}");
            let live = world.ends[client].transport.live().client_rpcs;
            assert_eq!(live, servers.into(), "the responses are still awaited");
        }
    }
}

/// CAP-20: a response that makes no progress for the timeout is given up if others need its memory;
/// without need, none is.
#[test]
fn stalled_responses_make_room_in_the_end() {
    let config = Config::builder()
        .max_message(1_000_000)
        .max_receive_bytes(3_000_000)
        .max_receive_bytes_per_peer(2_000_000)
        .max_receive_bytes_per_host(2_000_000)
        .build()
        .unwrap();
    for servers in [5, 56] {
        let mut world = World::new(config.clone());
        let honest = world.server(200, Conduct::Honest, 900_000);
        for host in 1..=servers {
            let conduct = Conduct::Stalls { upto: 59_000, trickle: 100 * MILLISECOND };
            let hostile = world.server(host, conduct, 1_000_000);
            world.call_to(SERVER, hostile, 100);
        }
        world.run(100 * MILLISECOND);
        world.call_to(SERVER, honest, 100);
        world.run(3_000 * MILLISECOND);
        let client = &world.ends[SERVER];
        assert_eq!(client.served, 1, "{servers}");
        let metrics = client.transport.metrics();
        let given_up = metrics.admission.stalled_responses_given_up;
        assert_eq!(given_up > 0, servers == 56, "{given_up}");
        let is_lost = |kind: &&FailureKind| **kind == FailureKind::ResponseLost;
        assert_eq!(client.failed.iter().filter(is_lost).count() as u64, given_up);
        assert_eq!(metrics.dropped(DropReason::NoBuffers) > 0, servers == 56);
    }
}
