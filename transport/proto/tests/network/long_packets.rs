//! A path that drops long packets without a report (SEND-16).

use crate::dice::Dice;
use crate::world::{Faults, MILLISECOND, SECOND, World};
use apus_proto::Config;

/// The longest packet on a path for IPv4 packets of 1,280 bytes: less the headers of IP and UDP.
const NARROW: usize = 1_280 - 20 - 8;

/// Two hosts with such a path between them.
fn world(loss: u32) -> World {
    let config = Config::builder().peer_idle_secs_min(1).peer_idle_secs_max(20).build().unwrap();
    let faults = Faults { longest: Some(NARROW), loss, ..Faults::default() };
    World::new(Dice::seeded(3), 2, config, faults)
}

fn narrowed(world: &World, host: usize) -> u64 {
    world.hosts[host].transport.metrics().recovery.paths_narrowed
}

/// Host `from` calls the other one with `bytes`, and the response (as long) arrives within
/// `millis`.
fn exchange(world: &mut World, from: usize, bytes: usize, millis: u64) {
    let before = world.responded();
    // Every fourth response is empty.
    let number = world.calls.len();
    world.call(from, 1 - from, bytes, false, None).unwrap();
    world.run_until(world.now + millis * MILLISECOND);
    assert_eq!(world.responded(), before + 1, "call {number} of {bytes} bytes");
}

fn come_to_rest(mut world: World) {
    world.heal();
    world.check_calls();
    world.check_nothing_is_left();
}

#[test]
fn long_messages_pass_in_short_packets_in_both_directions() {
    for bytes in [1_396, 3_000, 20_000, 1_000_000] {
        let mut world = world(0);
        exchange(&mut world, 0, 100, 50);
        exchange(&mut world, 0, bytes, 1_000);
        assert_eq!((narrowed(&world, 0), narrowed(&world, 1)), (1, 1), "{bytes} bytes");
        // From now on without a loss.
        let resent = |world: &World| world.hosts[0].transport.metrics().recovery.resent_packets;
        let before = resent(&world);
        exchange(&mut world, 0, bytes, 50);
        assert_eq!(resent(&world), before);
        exchange(&mut world, 1, bytes, 50);
        come_to_rest(world);
    }
}

/// The first contact: the server has no session with its client, and no byte of the request.
#[test]
fn the_first_call_to_a_server_may_be_a_long_one() {
    // Packets of 1,396 bytes, without a short one at the end; and with one.
    for bytes in [10 * 1_396, 20_000] {
        let mut world = world(0);
        exchange(&mut world, 0, bytes, 1_000);
        come_to_rest(world);
    }
}

#[test]
fn random_losses_beside_the_hole_lose_nothing() {
    let mut world = world(20);
    for _ in 0..30 {
        exchange(&mut world, 0, 20_000, 2_000);
        exchange(&mut world, 1, 20_000, 2_000);
    }
    come_to_rest(world);
}

/// SIZE-2: losses that have nothing to do with length leave packets as long as they are.
#[test]
fn where_packets_of_any_length_are_lost_they_stay_long() {
    let config = Config::builder().peer_idle_secs_min(1).peer_idle_secs_max(20).build().unwrap();
    let faults = Faults { loss: 30, ..Faults::default() };
    let mut world = World::new(Dice::seeded(4), 2, config, faults);
    for _ in 0..300 {
        world.call(0, 1, 20_000, false, None).unwrap();
        world.run_until(world.now + 100 * MILLISECOND);
    }
    world.run_until(world.now + SECOND);
    assert_eq!((narrowed(&world, 0), narrowed(&world, 1)), (0, 0));
    come_to_rest(world);
}
