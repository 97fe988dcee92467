//! Random faults of the network and of hosts.

use crate::dice::Dice;
use crate::world::{Faults, MILLISECOND, World};
use apus_proto::Config;

/// Calls in random directions at random times: empty, of some bytes or packets, and rarely of many.
pub(crate) fn traffic(world: &mut World, calls: usize) {
    let hosts = world.hosts.len();
    for _ in 0..calls {
        let from = world.dice.below(hosts as u64) as usize;
        let to = (from + 1 + world.dice.below(hosts as u64 - 1) as usize) % hosts;
        let length = match world.dice.below(10) {
            0..2 => 0,
            2..6 => 8 + world.dice.below(292),
            6..9 => 300 + world.dice.below(19_700),
            _ => 20_000 + world.dice.below(280_000),
        };
        // Duplicated idempotent calls may be executed twice; the check here wants once.
        world.call(from, to, length as usize, false, None).unwrap();
        let pause = world.dice.below(MILLISECOND);
        let until = world.now + pause;
        world.run_until(until);
        if world.faults.crashes && world.dice.chance(10) {
            let victim = world.dice.below(hosts as u64) as usize;
            world.crash(victim);
        }
    }
}

fn config() -> Config {
    Config::builder().peer_idle_secs_min(1).peer_idle_secs_max(20).build().unwrap()
}

fn run(seed: u64, faults: Faults, calls: usize) -> World {
    let mut world = World::new(Dice::seeded(seed), 3, config(), faults);
    traffic(&mut world, calls);
    world.heal();
    world.check_calls();
    world.check_nothing_is_left();
    world
}

#[test]
fn a_network_without_faults_loses_nothing() {
    for seed in 0..3 {
        let world = run(seed, Faults::default(), 300);
        assert_eq!(world.responded(), 300);
        for host in &world.hosts {
            assert_eq!(host.transport.metrics().recovery.resent_packets, 0);
        }
    }
}

#[test]
fn one_per_cent_loss_and_reordering_lose_nothing() {
    for seed in 10..16 {
        let faults = Faults { loss: 10, duplication: 10, delay: 20, ..Faults::default() };
        let world = run(seed, faults, 300);
        assert_eq!(world.responded(), 300, "seed {seed}");
    }
}

#[test]
fn twenty_per_cent_loss_loses_nothing() {
    for seed in 20..26 {
        let faults = Faults { loss: 200, duplication: 50, delay: 50, ..Faults::default() };
        let world = run(seed, faults, 200);
        assert_eq!(world.responded(), 200, "seed {seed}");
    }
}

#[test]
fn duplicates_that_come_after_minutes_are_not_executed() {
    for seed in 30..36 {
        let faults =
            Faults { loss: 50, duplication: 300, delay: 50, very_late: 500, ..Faults::default() };
        let world = run(seed, faults, 200);
        assert_eq!(world.responded(), 200, "seed {seed}");
        let late: u64 = world
            .hosts
            .iter()
            .map(|host| {
                let metrics = host.transport.metrics();
                metrics.admission.challenges_sent
                    + metrics.dropped(apus_proto::DropReason::Finished)
            })
            .sum();
        assert!(late > 0, "the scenario happens");
    }
}

#[test]
fn crashes_never_make_a_call_run_twice_or_lie() {
    for seed in 40..60 {
        let faults = Faults {
            loss: 50,
            duplication: 200,
            delay: 50,
            very_late: 300,
            crashes: true,
            ..Faults::default()
        };
        run(seed, faults, 200);
    }
}

/// Invariant CORE-1.
#[test]
fn the_same_seed_gives_the_same_run() {
    let faults = Faults {
        loss: 100,
        duplication: 100,
        delay: 50,
        very_late: 100,
        crashes: true,
        ..Faults::default()
    };
    let runs = [run(7, faults, 100), run(7, faults, 100)];
    assert_eq!(runs[0].delivered, runs[1].delivered);
    assert_eq!(runs[0].calls, runs[1].calls);
    let metrics =
        |world: &World| world.hosts.iter().map(|host| host.transport.metrics()).collect::<Vec<_>>();
    assert_eq!(metrics(&runs[0]), metrics(&runs[1]));
}
