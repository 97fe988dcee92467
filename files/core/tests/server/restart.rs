//! After a restart of the server, clients keep their leases if they return within a term.

use apus_fs_core::Store;
use apus_fs_core::wire::{
    Handle, Hello, InoRange, LeaseKind, NewNode, Record, Response, SessionRequest, Version,
};

use crate::world::{TERM, World, name};

use LeaseKind::{Exclusive, Shared};

fn rejoin(world: &mut World, id: usize, range: InoRange) -> u64 {
    let hello = Hello { session: Some(1), ranges: vec![range], ..World::hello(id) };
    let welcome = world.greet(id, hello).unwrap();
    assert!(!welcome.resumed && welcome.root.lease == LeaseKind::None);
    welcome.applied
}

fn reclaim(
    world: &mut World,
    id: usize,
    leases: &[(Handle, LeaseKind, Version)],
) -> Vec<(LeaseKind, bool)> {
    match world.ask(id, SessionRequest::Reclaim { leases: leases.to_vec() }) {
        Response::Reclaimed(reclaimed) => reclaimed,
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-11.
#[test]
fn leases_are_reclaimed_before_others_are_granted() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let ino = world.new_ino(0);
    let create = |name| World::create(root, name, ino, NewNode::File);
    world.apply(0, &[create("first")], b"");
    let version = world.find(0, root, "first", Shared).attributes.version;
    let file = world.find(0, root, "first", Shared).handle;
    let ranges = [world.range(0), world.range(1)];

    world.restart();
    assert_eq!(rejoin(&mut world, 1, ranges[1]), 0);
    let early = world.send(1, World::wanted(&[(root, Shared)]));
    world.pass(TERM / 2);
    assert!(world.is_waiting(early));
    assert_eq!(rejoin(&mut world, 0, ranges[0]), 1);
    let stale = Version { change: version.change + 1, ..version };
    let gone = Handle::created(apus_fs_core::wire::Ino(ranges[0].first + 500));
    let leases = [(root, Exclusive, stale), (file, Shared, version), (gone, Exclusive, version)];
    let reclaimed = reclaim(&mut world, 0, &leases);
    assert_eq!(reclaimed, [(Exclusive, false), (Shared, true), (LeaseKind::None, false)]);
    assert_eq!(reclaim(&mut world, 0, &[]), []);
    // A conflicting claim is not granted.
    let other = reclaim(&mut world, 1, &[(file, Exclusive, version), (root, Shared, version)]);
    assert_eq!(other, [(Shared, true), (LeaseKind::None, false)]);
    // Reclaimed leases are used at once: the unsent changes arrive.
    let ino = apus_fs_core::wire::Ino(ranges[0].first + 1);
    world.apply(0, &[World::create(root, "second", ino, NewNode::File)], b"");
    world.pass(TERM / 2);
    assert!(world.is_waiting(early));
    let (callback, nodes) = world.recall(0);
    assert_eq!((nodes[0].node, nodes[0].keep), (root, Shared));
    world.answer(callback, &[]);
    assert!(!world.is_waiting(early));
}

/// FSSERVE-11: a change that depends on leases of clients that have not returned yet waits.
#[test]
fn a_removal_waits_for_the_leases_of_others() {
    let mut world = World::with_clients(1);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let file = world.create_file(0, root, "file");
    let range = world.range(0);
    world.restart();
    assert_eq!(rejoin(&mut world, 0, range), 1);
    reclaim(&mut world, 0, &[(root, Exclusive, Version::default())]);
    let unlink = Record::Unlink { parent: root, name: name("file"), node: file };
    let batch = world.batch(0, &[unlink]);
    let batch = world.send(0, batch);
    world.poll();
    assert!(world.is_waiting(batch));
    world.pass(TERM);
    match world.response(batch) {
        Some(Response::BatchDone(done)) => assert_eq!((done.applied, done.failed), (2, None)),
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-10: also a file that is removed before the client has returned that has it open.
#[test]
fn a_file_is_kept_for_a_client_that_returns_later() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let file = world.create_file(0, root, "file");
    let ranges = [world.range(0), world.range(1)];
    world.restart();
    rejoin(&mut world, 0, ranges[0]);
    let claims = [root, file].map(|node| (node, Exclusive, Version::default()));
    reclaim(&mut world, 0, &claims);
    let unlink = Record::Unlink { parent: root, name: name("file"), node: file };
    world.apply(0, &[unlink, Record::Close { node: file }], b"");
    world.pass(TERM / 2);
    rejoin(&mut world, 1, ranges[1]);
    reclaim(&mut world, 1, &[(file, LeaseKind::None, Version::default())]);
    world.pass(TERM / 2);
    let (callback, nodes) = world.recall(1);
    assert!(nodes[0].is_removed);
    world.answer(callback, &[file]);
    assert_eq!(world.server.store().orphans(), [file.ino]);
    world.ask(1, SessionRequest::Goodbye);
    // The remover is asked as well: it has received the file.
    while let Some((callback, _)) = world.callback(0) {
        world.answer(callback, &[]);
    }
    world.pass(TERM * 20);
    assert_eq!(world.server.store().orphans(), []);
}

/// FSSERVE-10: an orphan outlives a restart if a client has it open.
#[test]
fn orphans_are_kept_for_clients_that_return() {
    let mut world = World::with_clients(1);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let files = ["open", "closed"].map(|file| {
        let node = world.create_file(0, root, file);
        world.apply(0, &[Record::Unlink { parent: root, name: name(file), node }], b"");
        node
    });
    let range = world.range(0);
    world.restart();
    rejoin(&mut world, 0, range);
    let claims = files.map(|file| (file, LeaseKind::None, Version::default()));
    reclaim(&mut world, 0, &claims[..1]);
    world.pass(TERM / 2);
    world.ask(0, SessionRequest::Renew);
    world.pass(TERM / 2);
    assert_eq!(world.server.store().orphans(), [files[0].ino]);
    let (callback, nodes) = world.recall(0);
    assert!(nodes[0].is_removed);
    world.answer(callback, &files[..1]);
    assert_eq!(world.server.store().orphans(), [files[0].ino]);
    world.apply(0, &[Record::Close { node: files[0] }], b"");
    assert_eq!(world.server.store().orphans(), []);
}

/// Has a client return after the grace period and claim the root to change it. Returns the outcome.
fn claim_late(world: &mut World, range: InoRange) -> LeaseKind {
    let hello = Hello { session: Some(1), ranges: vec![range], ..World::hello(0) };
    world.greet(0, hello).unwrap();
    let claim = (world.root, Exclusive, Version::default());
    reclaim(world, 0, &[claim])[0].0
}

/// Two clients. The first may have changed the root when the server was restarted; the grace period
/// has passed, and only the second client is back.
fn first_is_away() -> (World, [InoRange; 2]) {
    let mut world = World::with_clients(2);
    world.lease(0, &[(world.root, Exclusive)]);
    let ranges = [world.range(0), world.range(1)];
    world.restart();
    rejoin(&mut world, 1, ranges[1]);
    reclaim(&mut world, 1, &[]);
    world.pass(TERM);
    (world, ranges)
}

/// FSSERVE-15.
#[test]
fn a_latecomer_changes_nothing_that_another_client_has_seen() {
    let (mut world, ranges) = first_is_away();
    assert_eq!(claim_late(&mut world, ranges[0]), Exclusive, "no other client has seen the root");
    let (mut world, ranges) = first_is_away();
    world.lease(1, &[(world.root, Shared)]);
    assert_eq!(claim_late(&mut world, ranges[0]), LeaseKind::None);
}

/// FSSERVE-15.
#[test]
fn a_client_that_was_away_for_a_life_of_the_server_changes_nothing() {
    for is_seen in [false, true] {
        let (mut world, ranges) = first_is_away();
        if is_seen {
            world.lease(1, &[(world.root, Shared)]);
        }
        world.restart();
        let wanted = if is_seen { LeaseKind::None } else { Exclusive };
        assert_eq!(claim_late(&mut world, ranges[0]), wanted, "seen: {is_seen}");
    }
}
