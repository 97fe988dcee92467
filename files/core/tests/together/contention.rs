//! Several clients that use the same node all the time.

use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::{Ino, NewNode, Response};
use std::time::Duration;

use crate::world::{World, place, write};

/// Requests, callbacks, and one-way journeys of messages during a workload.
fn messages(world: &mut World, work: impl FnOnce(&mut World)) -> (u64, u64) {
    let before = (world.requests.iter().sum::<u64>(), world.callbacks_made());
    work(world);
    (world.requests.iter().sum::<u64>() - before.0, world.callbacks_made() - before.1)
}

fn world_with_a_log() -> (World, Ino) {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "log");
    assert_eq!(world.look_up(1, Ino::ROOT, "log"), Some(file));
    (world, file)
}

fn append_in_turn(world: &mut World, file: Ino, rounds: std::ops::Range<u32>) {
    for round in rounds {
        for client in 0..2 {
            world.append(client, file, format!("{client} {round}\n").as_bytes());
        }
    }
}

/// FSSERVE-14, FSCLIENT-7, FS-17: two calls an operation, and no callback.
#[test]
fn appends_in_turn_take_two_calls_and_no_callback() {
    let (mut world, file) = world_with_a_log();
    append_in_turn(&mut world, file, 0..4);
    let (requests, callbacks) = messages(&mut world, |world| append_in_turn(world, file, 4..54));
    println!("100 appends in turn: {requests} requests, {callbacks} callbacks");
    assert!(requests <= 202 && callbacks == 0, "{requests} requests, {callbacks} callbacks");
    let text = String::from_utf8(world.read(0, file)).unwrap();
    let lines = (0..54).flat_map(|round| (0..2).map(move |client| format!("{client} {round}")));
    assert!(text.lines().eq(lines), "{text}");
    assert_eq!(world.warnings, [""; 0]);
}

#[test]
fn creations_in_turn_take_three_calls_and_no_callback() {
    let mut world = World::new(2);
    let directory = world.mkdir(0, Ino::ROOT, "shared");
    assert_eq!(world.look_up(1, Ino::ROOT, "shared"), Some(directory));
    let create_in_turn = |world: &mut World, rounds: std::ops::Range<u32>| {
        for round in rounds {
            for client in 0..2 {
                world.create(client, directory, &format!("{client}-{round}"));
            }
        }
    };
    create_in_turn(&mut world, 0..4);
    let (requests, callbacks) = messages(&mut world, |world| create_in_turn(world, 4..54));
    println!("100 creations in turn: {requests} requests, {callbacks} callbacks");
    assert_eq!(world.list(0, directory).len(), 108);
    assert_eq!(world.list(1, directory).len(), 108);
    assert!(requests <= 420 && callbacks == 0, "{requests} requests, {callbacks} callbacks");
}

/// FSSERVE-14: after a second in which only one client has used it, it has the lease again.
#[test]
fn a_quiet_node_is_leased_again() {
    let (mut world, file) = world_with_a_log();
    append_in_turn(&mut world, file, 0..8);
    world.pass(Duration::from_millis(1_100));
    world.append(0, file, b"x");
    let (requests, callbacks) = messages(&mut world, |world| {
        for _ in 0..100 {
            world.append(0, file, b"x");
        }
        world.flush(0);
    });
    assert!(requests <= 5 && callbacks == 0, "{requests} requests, {callbacks} callbacks");
}

/// FSSERVE-14: a client that does not give a lease back in time loses it by a recall.
#[test]
fn a_lent_lease_that_does_not_come_back_is_recalled() {
    let (mut world, file) = world_with_a_log();
    append_in_turn(&mut world, file, 0..8);
    world.hold_back(0, |response| matches!(response, Response::Leased { .. }));
    let late = world.begin(0, write(file, 0, b"late\n", true));
    let other = world.begin(1, write(file, 0, b"other\n", true));
    assert_eq!(world.ended(1, other), None);
    assert_eq!(world.wait(1, other), Ok(Reply::Written(6)));
    world.release();
    assert_eq!(world.wait(0, late), Ok(Reply::Written(5)));
    let text = String::from_utf8(world.read(1, file)).unwrap();
    assert!(text.ends_with("other\nlate\n"), "{text}");
}

/// FSCLIENT-7: changes under a lent lease are sent again after a restart of the server, with the
/// lease.
#[test]
fn changes_under_a_lent_lease_survive_a_restart_of_the_server() {
    let (mut world, file) = world_with_a_log();
    append_in_turn(&mut world, file, 0..8);
    world.hold_back(0, |response| matches!(response, Response::BatchDone(_)));
    world.append(0, file, b"kept\n");
    world.restart_server(0);
    world.release();
    world.append(1, file, b"last\n");
    let text = String::from_utf8(world.read(0, file)).unwrap();
    assert!(text.ends_with("kept\nlast\n"), "{text}");
    assert_eq!(world.warnings, [""; 0]);
}

/// FSSERVE-14: an operation that fails when it gets the lease delays others by at most the time
/// after which the lease is recalled.
#[test]
fn an_operation_that_fails_delays_others_for_a_short_time() {
    let mut world = World::new(2);
    for round in 0..8 {
        for client in 0..2 {
            world.create(client, Ino::ROOT, &format!("{client}-{round}"));
        }
    }
    let create = |name: &str| Operation::Create {
        place: place(Ino::ROOT, name),
        node: NewNode::File,
        mode: 0o644,
        open: false,
    };
    let first = world.begin_unsettled(0, create("same"));
    let second = world.begin_unsettled(1, create("same"));
    let outcomes = [world.wait(0, first), world.wait(1, second)];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    let before = world.now();
    for client in 0..2 {
        world.create(client, Ino::ROOT, &format!("another-{client}"));
    }
    let taken = world.now() - before;
    assert!(taken < Duration::from_millis(60), "{taken:?}");
}
