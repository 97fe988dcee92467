//! Batches: in order, once, with the leases that they need, and none after a failed one.

use apus_fs_core::server::ServerSettings;
use apus_fs_core::wire::{
    Batch, BatchDone, Data, Errno, FailedBatch, Failure, Handle, Hello, LeaseKind, NewNode, Record,
    Response, SessionRequest, SetAttributes, Time,
};

use crate::store::SmallStore;
use crate::world::{World, name, settings};

use LeaseKind::{Exclusive, Shared};

fn world() -> World {
    let mut world = World::with_clients(2);
    world.lease(0, &[(world.root, Exclusive)]);
    world
}

fn done(response: Option<Response>) -> BatchDone {
    match response {
        Some(Response::BatchDone(done)) => done,
        other => panic!("{other:?}"),
    }
}

fn write(file: Handle, offset: u64, length: u32) -> Record {
    let data = Data { start: 0, length };
    Record::Write { file, offset, data, time: Time::default() }
}

/// FSSERVE-9: the response follows the commit, and one commit serves all clients.
#[test]
fn a_burst_of_batches_is_committed_once() {
    let mut world = world();
    let root = world.root;
    let directory = world.new_ino(0);
    world.apply(0, &[World::create(root, "directory", directory, NewNode::Directory)], b"");
    let directory = world.find(0, root, "directory", LeaseKind::None).handle;
    world.release_all(0, &[directory]);
    world.lease(1, &[(directory, Exclusive)]);
    let commits = world.server.store().commits;
    let batches: Vec<_> = [(0, root), (1, directory)]
        .map(|(id, parent)| {
            let ino = world.new_ino(id);
            let batch = world.batch(id, &[World::create(parent, "new", ino, NewNode::File)]);
            world.send(id, batch)
        })
        .into();
    assert!(batches.iter().all(|call| world.is_waiting(*call)));
    world.poll();
    assert_eq!(world.server.store().commits, commits + 1);
    for call in batches {
        let done = done(world.response(call));
        assert_eq!((done.failed, done.changed.len()), (None, 2));
        assert!(done.changed.iter().all(|(handle, _)| handle.proof != 0));
    }
}

/// FSSERVE-8.
#[test]
fn a_repeated_batch_is_answered_and_not_applied_again() {
    let mut world = world();
    let root = world.root;
    let ino = world.new_ino(0);
    let batch = world.batch(0, &[World::create(root, "once", ino, NewNode::File)]);
    let calls = [world.send(0, batch.clone()), world.send(0, batch.clone())];
    world.poll();
    for call in calls {
        assert_eq!(done(world.response(call)).failed, None);
    }
    let commits = world.server.store().commits;
    let again = done(Some(world.ask(0, batch)));
    assert_eq!(again, BatchDone { applied: 1, failed: None, changed: vec![] });
    assert_eq!(world.server.store().commits, commits);
}

/// FSSERVE-8: batches that arrive before their predecessor wait for it.
#[test]
fn early_batches_are_held_back() {
    let mut world = world();
    let root = world.root;
    let mut requests: Vec<_> = (0..20)
        .map(|n| {
            let ino = world.new_ino(0);
            world.batch(0, &[World::create(root, &format!("{n:02}"), ino, NewNode::File)])
        })
        .collect();
    let first = requests.remove(0);
    requests.reverse();
    let calls: Vec<_> = requests.into_iter().map(|request| world.send(0, request)).collect();
    world.poll();
    assert!(calls.iter().all(|call| world.is_waiting(*call)));
    assert_eq!(done(Some(world.ask(0, first))).applied, 1);
    for (call, number) in calls.into_iter().zip((2..=20).rev()) {
        assert_eq!(done(world.response(call)).applied, number);
    }
    // Batches far ahead are refused.
    let far = SessionRequest::Batch(Batch { number: 100, records: vec![], returns: vec![] });
    let out_of_order = Failure::BatchOutOfOrder { expected: 21 };
    assert_eq!(world.ask(0, far), Response::Failed(out_of_order));
}

/// FSSERVE-8: after a failed batch, no batch is applied until the client has sent Hello.
#[test]
fn a_failed_batch_stops_those_that_follow() {
    let mut world = world();
    let root = world.root;
    let inos: Vec<_> = (0..4).map(|_| world.new_ino(0)).collect();
    let create = |name: &str, at: usize| World::create(root, name, inos[at], NewNode::File);
    let failing = [create("a", 0), create("a", 1), create("b", 2)];
    let requests = [world.batch(0, &failing), world.batch(0, &[create("c", 3)])];
    let calls = requests.clone().map(|request| world.send(0, request));
    world.poll();
    let first = done(world.response(calls[0]));
    assert_eq!((first.applied, first.failed), (1, Some((1, Errno::EXIST))));
    let stopped = Response::Failed(Failure::BatchOutOfOrder { expected: 2 });
    assert_eq!(world.response(calls[1]), Some(stopped.clone()));
    assert_eq!(world.ask(0, requests[1].clone()), stopped);
    // A client that has lost the response learns of the failure again.
    assert_eq!(done(Some(world.ask(0, requests[0].clone()))).failed, Some((1, Errno::EXIST)));
    let session = Some(world.clients[&0].session);
    // A Hello that was sent before the failure changes no state, and its response reports the
    // failure.
    let welcome = world.greet(0, Hello { session, ..World::hello(0) }).unwrap();
    let failed = Some(FailedBatch { number: 1, record: 1, error: Errno::EXIST });
    assert_eq!((welcome.resumed, welcome.applied, welcome.failed), (true, 1, failed));
    assert_eq!(world.ask(0, requests[1].clone()), stopped);
    let welcome = world.greet(0, Hello { session, greeting: 1, ..World::hello(0) }).unwrap();
    assert_eq!((welcome.resumed, welcome.applied), (true, 1));
    assert_eq!(done(Some(world.ask(0, requests[1].clone()))).applied, 2);
    // The node that was not created is not leased; the others are.
    match world.ask(0, SessionRequest::Status) {
        Response::Status(status) => assert_eq!((status.clients[0].1, status.clients[0].2), (0, 3)),
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-2.
#[test]
fn changes_need_leases() {
    let mut world = world();
    let root = world.root;
    let file = world.create_file(0, root, "file");
    world.lease(0, &[(file, Exclusive)]);
    let refused = |world: &mut World, record: Record| {
        let batch = world.batch(1, &[record]);
        assert_eq!(world.ask(1, batch), Response::Failed(Failure::Errno(Errno::STALE)));
        world.join(1);
    };
    let ino = world.new_ino(1);
    refused(&mut world, World::create(root, "other", ino, NewNode::File));
    refused(&mut world, write(file, 0, 0));
    let set = SetAttributes { mode: Some(0o600), ..SetAttributes::default() };
    refused(&mut world, Record::SetAttributes { node: file, set });
    let unlink = Record::Unlink { parent: root, name: name("file"), node: file };
    refused(&mut world, unlink.clone());
    // A shared lease of another session on the node prevents the removal of its name.
    world.release_all(0, &[file]);
    world.lease(1, &[(file, Shared)]);
    let batch = world.batch(0, std::slice::from_ref(&unlink));
    assert_eq!(world.ask(0, batch), Response::Failed(Failure::Errno(Errno::STALE)));
    world.release_all(1, &[file]);
    let session = Some(world.clients[&0].session);
    world.greet(0, Hello { session, greeting: 1, ..World::hello(0) }).unwrap();
    world.apply(0, &[unlink], b"");
}

/// FSSERVE-2: a number that another session has received cannot be created again.
#[test]
fn a_node_that_others_have_leased_is_not_created_again() {
    let mut world = world();
    let root = world.root;
    let file = world.create_file(0, root, "file");
    world.release_all(0, &[file]);
    world.lease(1, &[(file, Shared)]);
    let again = World::create(root, "again", file.ino, NewNode::File);
    let batch = world.batch(0, &[again]);
    assert_eq!(world.ask(0, batch), Response::Failed(Failure::Errno(Errno::STALE)));
}

/// FSSERVE-2: the lease for a removal is recalled like other leases.
#[test]
fn a_node_that_only_loses_a_name_is_leased_until_the_change_is_applied() {
    let mut world = world();
    let root = world.root;
    let file = world.create_file(0, root, "file");
    world.release_all(0, &[file]);
    let link = Record::Link { node: file, parent: root, name: name("second") };
    let batch = world.batch(0, &[link]);
    let batch = world.send(0, batch);
    let look_up = world.send(1, World::look_up(file, &[], Shared));
    assert!(world.is_waiting(batch) && world.is_waiting(look_up));
    let (callback, _) = world.recall(0);
    world.answer(callback, &[]);
    assert!(!world.is_waiting(batch));
    match world.response(look_up) {
        Some(Response::Found { start, .. }) => assert_eq!(start.attributes.links, 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_changes_where_it_is_not_permitted() {
    let read_only = ServerSettings { read_only: true, ..settings() };
    let mut world = World::with(SmallStore::new(), read_only);
    assert!(world.join(0).read_only);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let ino = world.new_ino(0);
    let batch = world.batch(0, &[World::create(root, "new", ino, NewNode::File)]);
    assert_eq!(world.ask(0, batch), Response::Failed(Failure::Errno(Errno::ROFS)));
    let mut world = World::with(SmallStore::new(), settings());
    world.greet(0, Hello { read_only: true, ..World::hello(0) }).unwrap();
    world.lease(0, &[(world.root, Exclusive)]);
    let ino = world.new_ino(0);
    let batch = world.batch(0, &[World::create(root, "new", ino, NewNode::File)]);
    assert_eq!(world.ask(0, batch), Response::Failed(Failure::Errno(Errno::ROFS)));
}

/// FSSERVE-6: a client that returns a lease too early cannot change the node behind the next
/// holder's back either.
#[test]
fn a_lease_is_given_back_after_what_was_appended() {
    let mut world = world();
    let root = world.root;
    let file = world.create_file(0, root, "file");
    let requests = [4, 8].map(|length| world.batch(0, &[write(file, 0, length)]));
    let batches = requests.map(|request| world.send_with(0, request, b"contents"));
    world.send(0, SessionRequest::Release { leases: vec![(file, LeaseKind::None)] });
    assert!(batches.iter().all(|batch| !world.is_waiting(*batch)));
    match world.ask(1, World::look_up(file, &[], Shared)) {
        Response::Found { start, .. } => assert_eq!(start.contents.unwrap(), "contents"),
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-12: the server ends when its store fails; it makes no promise any more.
#[test]
fn a_store_that_fails_ends_the_server() {
    let mut store = SmallStore::new();
    store.is_broken = true;
    let mut world = World::with(store, settings());
    world.join(0);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let ino = world.new_ino(0);
    let batch = world.batch(0, &[World::create(root, "new", ino, NewNode::File)]);
    let batch = world.send(0, batch);
    assert!(world.server.poll(world.now).is_err());
    assert!(world.is_waiting(batch));
    let renewed = world.send(0, SessionRequest::Renew);
    assert_eq!(world.response(renewed), Some(Response::Failed(Failure::Errno(Errno::IO))));
}
