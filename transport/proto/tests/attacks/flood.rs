//! Floods of packets that ask for an answer, at a server that is behind with reading. Requirement
//! BAD-10.

use crate::world::{Conduct, SERVER, World};
use apus_proto::{Config, DropReason};
use apus_wire::{Body, Data, Resend};
use std::time::Duration;

const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Answers per millisecond to senders without a session.
const PER_MS: u64 = 20;
/// Those that are saved from before.
const SAVED: u64 = 50 * PER_MS;

const REQUEST: Body<'_> = Body::Data(Data::first(1, 1), &[7]);
const QUESTION: Body<'_> = Body::Resend(Resend::everything(7));

/// A server that has not read everything for a second.
fn behind() -> World {
    let mut world = World::new(Config::default());
    world.ends[SERVER].transport.begin_reading(world.now);
    world.run(Duration::from_secs(1));
    world
}

/// A packet arrives in each of these microseconds, each with the host and port that `sender`
/// returns. Returns the challenges sent, and the packets dropped for want of an answer.
fn flood(
    world: &mut World,
    micros: u32,
    body: Body<'_>,
    sender: fn(u32) -> (u32, u16),
) -> (u64, u64) {
    let count = |world: &World| {
        let metrics = world.ends[SERVER].transport.metrics();
        (metrics.admission.challenges_sent, metrics.dropped(DropReason::Unanswered))
    };
    let before = count(world);
    for packet in 0..micros {
        world.forge(sender(packet), body);
        world.run(MICROSECOND);
    }
    let after = count(world);
    (after.0 - before.0, after.1 - before.1)
}

/// `apus-lab lab hostile`, attack `unknown`: a server that challenged each of 195,000 clients a
/// second answered 83 % of honest calls.
#[test]
fn first_contacts_in_many_names_get_few_answers() {
    let mut world = World::new(Config::default());
    let known = world.client(1, 1, Conduct::Honest);
    world.call(known, 100);
    world.run(MILLISECOND);
    world.ends[SERVER].transport.begin_reading(world.now);
    world.run(MILLISECOND);
    let (challenges, unanswered) = flood(&mut world, 100_000, REQUEST, |n| (n, 1));
    assert_eq!(challenges, SAVED + 100 * PER_MS);
    assert_eq!(challenges + unanswered, 100_000);

    world.call(known, 100);
    world.run(MILLISECOND);
    assert_eq!(world.ended(&[known]), (2, 0), "a client with a session needs no such answer");
}

/// Packets of one host, from many ports: a newcomer of another host is challenged at once, and
/// served.
#[test]
fn a_host_leaves_answers_to_others() {
    let mut world = behind();
    let answers = flood(&mut world, 100_000, QUESTION, |n| (7, n as u16));
    assert_eq!(100_000 - answers.1, (SAVED + 100 * PER_MS) / 4);
    let newcomer = world.client(2, 1, Conduct::Honest);
    world.call(newcomer, 100);
    world.run(MILLISECOND);
    assert_eq!(world.ended(&[newcomer]), (1, 0));
}

/// `apus-lab lab hostile`, attack `forged`: packets in the name of a client. Their answers, 55,000
/// a second, kept the client itself from its responses: p50 was 129 ms.
#[test]
fn what_is_said_in_a_clients_name_brings_it_few_answers() {
    let mut world = World::new(Config::default());
    let answers = flood(&mut world, 100_000, QUESTION, |_| (7, 1));
    assert_eq!(100_000 - answers.1, (50 + 100) * 10);
}

/// Packets that waited for a short time are answered, whatever their number.
#[test]
fn a_server_that_keeps_up_answers_everybody() {
    let mut world = behind();
    for _ in 0..500 {
        world.ends[SERVER].transport.begin_reading(world.now);
        let packets = flood(&mut world, 200, REQUEST, |n| (n, 1));
        assert_eq!(packets, (200, 0));
    }
}
