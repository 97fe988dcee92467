//! Claims: long messages that arrive hardly or not at all. Requirements CAP-8, CAP-19 and CAP-20.

use crate::world::{Conduct, SERVER, World};
use apus_proto::{Config, FailureKind, Refusal};
use std::time::Duration;

const MB: usize = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// Only the first packet, and a byte in 10 ms: 50 kbit/s with headers.
const CLAIMS: Conduct = Conduct::Stalls { upto: 1_400, trickle: Duration::from_millis(10) };

/// The attack as it was shown: four claims of 64 MiB from one client filled the budget of 256 MiB,
/// and none of eight honest calls was served.
#[test]
fn claims_take_no_room_from_others() {
    let mut world = World::new(Config::default());
    for port in 1..=4 {
        let attacker = world.client(1, port, CLAIMS);
        world.call(attacker, 64 * MB);
    }
    world.run(SECOND / 10);
    let honest: Vec<usize> = (2..=9).map(|host| world.client(host, 1, Conduct::Honest)).collect();
    for client in &honest {
        world.call(*client, MB);
    }
    world.run(SECOND / 2);
    assert_eq!(world.ended(&honest), (8, 0));
    let server = world.ends[SERVER].transport.live();
    assert!(server.receive_bytes < 4 * 60_000, "{} bytes are reserved", server.receive_bytes);
    assert_eq!(server.server_rpcs, 4, "the claims are still there: their clients are alive");
}

/// 200 claims of a length that is allocated at once. They return the memory, and honest clients of
/// the same host are served.
#[test]
fn claims_give_back_what_does_not_arrive() {
    let config = Config::builder().max_receive_bytes_per_host(64 << 20).build().unwrap();
    let mut world = World::new(config);
    for port in 1..=200 {
        let attacker = world.client(1, port, CLAIMS);
        world.call(attacker, MB);
    }
    world.run(SECOND / 10);
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!((metrics.admission.stalled_messages, metrics.live.server_rpcs), (200, 200));
    assert!(metrics.live.receive_bytes < 200 * 2_000, "{}", metrics.live.receive_bytes);
    let honest: Vec<usize> =
        (1..=20).map(|port| world.client(1, 1_000 + port, Conduct::Honest)).collect();
    for client in &honest {
        world.call(*client, 2 * MB);
    }
    world.run(SECOND);
    assert_eq!(world.ended(&honest), (20, 0));
}

/// CAP-8: a paused sender continues where it was. Its room has been given to others in the
/// meantime, or not.
#[test]
fn a_message_that_goes_on_is_completed() {
    let mut world = World::new(Config::default());
    let client = world.client(1, 1, Conduct::Stalls { upto: 9_000, trickle: SECOND / 1_000 });
    world.call(client, 100_000);
    world.run(SECOND / 2);
    let metrics = world.ends[SERVER].transport.metrics();
    assert_eq!(metrics.admission.stalled_messages, 1, "a byte in a millisecond is no progress");
    world.ends[client].behave();
    world.run(SECOND);
    assert_eq!(world.ended(&[client]), (1, 0));
    assert_eq!(world.ends[SERVER].transport.live().receive_bytes, 0);
}

/// A budget for two of the longest messages and some more.
fn small() -> Config {
    Config::builder()
        .max_message(1_000_000)
        .max_receive_bytes(3_000_000)
        .max_receive_bytes_per_peer(2_000_000)
        .max_receive_bytes_per_host(2_000_000)
        .build()
        .unwrap()
}

/// CAP-20: 40 messages share room for three. They reserve while they grow; one at a time is assured
/// of its room, so that all of them end.
#[test]
fn half_received_messages_do_not_stop_each_other() {
    for clients_per_host in [1, 8] {
        let mut world = World::new(small());
        let clients: Vec<usize> = (0..40)
            .map(|n| world.client(1 + n / clients_per_host, u16::from(n) + 1, Conduct::Honest))
            .collect();
        for client in &clients {
            world.call(*client, 1_000_000);
        }
        world.run(5 * SECOND);
        assert!(world.most_bytes <= 3_000_000);
        let served = clients.iter().filter(|client| world.ends[**client].served == 1).count();
        let refused = FailureKind::Refused(Refusal::Overloaded);
        let rest = clients.iter().flat_map(|client| &world.ends[*client].failed);
        assert!(rest.clone().all(|reason| *reason == refused), "all calls end");
        assert_eq!(served + rest.count(), 40);
        assert!(served >= if clients_per_host == 1 { 40 } else { 20 }, "{served} were served");
        assert_eq!(world.ends[SERVER].transport.live().receive_bytes, 0);
    }
}

/// CAP-19: short messages have room, however many long ones exist.
#[test]
fn long_messages_leave_room_for_short_ones() {
    let mut world = World::new(small());
    for host in 1..=100 {
        let attacker = world.client(host, 1, Conduct::Stalls { upto: 59_000, trickle: SECOND });
        world.call(attacker, 1_000_000);
    }
    world.run(SECOND / 50);
    assert!(world.ends[SERVER].transport.metrics().dropped(apus_proto::DropReason::NoBuffers) > 0);
    let honest: Vec<usize> =
        (101..=105).map(|host| world.client(host, 1, Conduct::Honest)).collect();
    for client in &honest {
        world.call(*client, 50_000);
    }
    world.run(SECOND / 50);
    assert_eq!(world.ended(&honest), (5, 0));
}

/// BAD-6: when memory is full of bytes that have arrived of requests which make no progress, some
/// are given up, and others are served. Without need none is.
#[test]
fn stalled_requests_make_room_in_the_end() {
    let stalls = Conduct::Stalls { upto: 59_000, trickle: SECOND };
    for attackers in [5, 56] {
        let mut world = World::new(small());
        for host in 1..=attackers {
            let attacker = world.client(host, 1, stalls);
            world.call(attacker, 1_000_000);
        }
        world.run(SECOND / 10);
        let honest = world.client(200, 1, Conduct::Honest);
        world.call(honest, 900_000);
        world.run(2 * SECOND);
        assert_eq!(world.ended(&[honest]), (1, 0), "{attackers}");
        let metrics = world.ends[SERVER].transport.metrics();
        let given_up = metrics.admission.stalled_requests_given_up;
        assert_eq!(given_up > 0, attackers == 56, "{given_up}");
        assert!(world.most_bytes <= 3_000_000);
    }
}

/// GRANT-15, GRANT-16: clients that report no backlog hold their granted bytes, and send none. They
/// fall silent, and the others continue.
#[test]
fn senders_that_hold_what_they_were_granted_delay_others_for_a_silence() {
    let config = Config::builder().informed_incoming(18_000).build().unwrap();
    let mut world = World::new(config);
    for port in 1..=20 {
        let attacker = world.client(1, port, CLAIMS);
        world.call(attacker, MB);
    }
    let honest: Vec<usize> = (2..=9).map(|host| world.client(host, 1, Conduct::Honest)).collect();
    for client in &honest {
        world.call(*client, MB);
    }
    world.run(SECOND);
    assert_eq!(world.ended(&honest), (8, 0));
}
