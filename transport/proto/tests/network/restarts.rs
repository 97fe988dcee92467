//! Calls of clients that know an earlier life of their server (AMO-3, AMO-11).

use crate::dice::Dice;
use crate::world::{Faults, MILLISECOND, State, World};
use apus_proto::{Config, Execution};

/// Host 0 calls host 1, which is at rest afterwards.
fn acquainted() -> World {
    let config = Config::builder().peer_idle_secs_min(1).peer_idle_secs_max(20).build().unwrap();
    let mut world = World::new(Dice::seeded(1), 2, config, Faults::default());
    call(&mut world, 100);
    world.run_until(world.now + 10 * MILLISECOND);
    assert_eq!(world.responded(), 1);
    world
}

/// Host 0 calls host 1 with a request of `bytes`.
fn call(world: &mut World, bytes: usize) {
    world.call(0, 1, bytes, false, None).unwrap();
}

fn sent_again(world: &World) -> u64 {
    world.hosts[0].transport.metrics().admission.calls_sent_again
}

/// Everything ends well, and no call was executed twice.
fn come_to_rest(mut world: World) {
    world.heal();
    world.check_calls();
    world.check_nothing_is_left();
}

/// AMO-11: what was sent to the new life was not executed in the earlier one, short or long.
#[test]
fn calls_that_are_younger_than_the_server_are_sent_again() {
    for bytes in [0, 100, 20_000, 300_000] {
        let mut world = acquainted();
        world.crash(1);
        world.run_until(world.now + MILLISECOND);
        for _ in 0..5 {
            call(&mut world, bytes);
        }
        world.run_until(world.now + 100 * MILLISECOND);
        assert_eq!(world.responded(), 6, "{bytes} bytes");
        assert!(sent_again(&world) > 0);
        assert!(world.calls.iter().all(|call| call.executed == 1));
        come_to_rest(world);
    }
}

/// AMO-11: a packet of the earlier life's session may have been executed, so the answer is unknown;
/// calls made later are served.
#[test]
fn a_call_in_flight_over_the_restart_has_an_unknown_fate() {
    let mut world = acquainted();
    call(&mut world, 100);
    world.crash(1);
    world.run_until(world.now + 50 * MILLISECOND);
    assert_eq!(world.calls[1].state, State::Failed(Execution::Unknown));
    call(&mut world, 100);
    world.run_until(world.now + 50 * MILLISECOND);
    assert_eq!((world.responded(), sent_again(&world)), (2, 0));
    come_to_rest(world);
}

/// AMO-11: executed by the earlier life, whose response is lost; its request is sent again and
/// reaches the new life.
#[test]
fn a_call_that_was_executed_before_the_restart_is_not_executed_again() {
    let mut world = acquainted();
    call(&mut world, 100);
    while world.calls[1].executed == 0 {
        world.run_until(world.now + 1_000);
    }
    world.crash(1);
    world.run_until(world.now + 500 * MILLISECOND);
    assert_eq!((world.calls[1].executed, sent_again(&world)), (1, 0));
    assert_eq!(world.calls[1].state, State::Failed(Execution::Unknown));
    come_to_rest(world);
}

/// AMO-11: a server that has only forgotten its client, and may have executed the call, is older
/// than the session.
#[test]
fn a_server_that_has_forgotten_the_session_was_not_restarted() {
    let config = Config::builder()
        .peer_idle_secs_min(1)
        .peer_idle_secs_max(2)
        .max_dormant_sessions(1)
        .build()
        .unwrap();
    let mut world = World::new(Dice::seeded(1), 4, config, Faults::default());
    for host in 1..4 {
        world.call(host, 0, 100, false, None).unwrap();
        world.run_until(world.now + 10 * MILLISECOND);
        // A call in the other direction keeps the client's memory of the server's session alive.
        while !world.now.is_multiple_of(4 * 1_000 * MILLISECOND) {
            let next = (world.now / MILLISECOND + 500) / 500 * 500 * MILLISECOND;
            world.run_until(next);
        }
    }
    let restarted = |world: &World| -> u64 {
        (1..4).map(|host| world.hosts[host].transport.metrics().admission.calls_sent_again).sum()
    };
    assert_eq!(restarted(&world), 0);
    world.heal();
    world.check_calls();
}

/// AMO-11, with loss, duplicates and late packets: random times around the restarts.
#[test]
fn no_restart_makes_a_call_run_twice() {
    let (mut sent_again_in_all, mut failed) = (0, 0);
    for seed in 0..40 {
        let faults =
            Faults { loss: 50, duplication: 200, delay: 50, very_late: 300, ..Faults::default() };
        let mut world = World::new(Dice::seeded(seed), 2, Config::default(), faults);
        for _ in 0..60 {
            let bytes = 8 + world.dice.below(20_000) as usize;
            call(&mut world, bytes);
            let pause = world.dice.below(2 * MILLISECOND);
            world.run_until(world.now + pause);
            if world.dice.chance(50) {
                world.crash(1);
                let pause = world.dice.below(MILLISECOND);
                world.run_until(world.now + pause);
            }
        }
        world.heal();
        world.check_calls();
        sent_again_in_all += sent_again(&world);
        failed += world.calls.len() - world.responded();
    }
    assert!(sent_again_in_all > 20, "{sent_again_in_all}");
    assert!(failed > 20, "{failed}");
}
