//! Leases exclude each other, are recalled, and end with their session.

use apus_fs_core::wire::frame::encode;
use apus_fs_core::wire::{
    Callback, CallbackResponse, Data, Failure, Handle, LeaseKind, NewNode, NodeRange, Record,
    Response, SessionRequest, Time,
};

use crate::world::{TERM, World};

use LeaseKind::{Exclusive, Shared};

/// FSSERVE-1, FSSERVE-3: a read waits until the holder has given its exclusive lease back.
#[test]
fn an_exclusive_lease_is_recalled_before_others_read() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let look_up = world.send(1, World::look_up(root, &["new"], Shared));
    assert!(world.is_waiting(look_up));
    let (callback, nodes) = world.recall(0);
    assert_eq!((nodes[0].node, nodes[0].keep, nodes[0].is_removed), (root, Shared, false));
    // The holder's change arrives while the recall is outstanding.
    let ino = world.new_ino(0);
    world.apply(0, &[World::create(root, "new", ino, NewNode::File)], b"");
    assert!(world.is_waiting(look_up));
    world.answer(callback, &[]);
    // The new node is leased exclusively by its creator.
    assert!(world.is_waiting(look_up));
    let (callback, nodes) = world.recall(0);
    assert_eq!((nodes[0].node.ino, nodes[0].keep), (ino, Shared));
    world.answer(callback, &[]);
    match world.response(look_up) {
        Some(Response::Found { start, steps }) => {
            assert_eq!((start.lease, steps.len()), (Shared, 1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.callback(0), None);
}

/// FSSERVE-7: a request for several nodes is granted as a whole, and keeps its place.
#[test]
fn requests_are_granted_as_a_whole_in_the_order_of_arrival() {
    let mut world = World::with_clients(4);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let file = world.create_file(0, root, "file");
    world.release_all(0, &[root, file]);
    world.lease(0, &[(root, Exclusive)]);
    world.lease(1, &[(file, Shared)]);
    let both = world.send(2, World::wanted(&[(root, Exclusive), (file, Exclusive)]));
    // `file` is only shared, but a request for it arrived earlier.
    let later = world.send(3, World::wanted(&[(file, Shared)]));
    assert!(world.is_waiting(both) && world.is_waiting(later));
    // The holder of a lease reads on: it may have to, before it can answer.
    let range = NodeRange { file, offset: 0, length: 10 };
    let read = world.ask(1, SessionRequest::Read { ranges: vec![range] });
    assert!(matches!(read, Response::ReadDone(_)));
    let (first, _) = world.recall(0);
    let (second, nodes) = world.recall(1);
    assert_eq!(nodes[0].keep, LeaseKind::None);
    world.answer(first, &[]);
    assert!(world.is_waiting(both));
    world.answer(second, &[]);
    assert!(!world.is_waiting(both) && world.is_waiting(later));
    let (third, nodes) = world.recall(2);
    assert_eq!((nodes.len(), nodes[0].node, nodes[0].keep), (1, file, Shared));
    world.answer(third, &[]);
    assert!(!world.is_waiting(later));
}

#[test]
fn a_shared_lease_is_raised_when_the_others_are_gone() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Shared)]);
    world.lease(1, &[(root, Shared)]);
    let raised = world.send(0, World::wanted(&[(root, Exclusive)]));
    assert_eq!(world.callback(0), None);
    let (callback, nodes) = world.recall(1);
    assert_eq!(nodes[0].keep, LeaseKind::None);
    world.answer(callback, &[]);
    match world.response(raised) {
        Some(Response::Leased { leases: leased, .. }) => assert_eq!(leased[0].0, Exclusive),
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-5: no lease is granted that the answer to an outstanding recall would end.
#[test]
fn nothing_is_granted_while_a_recall_is_outstanding() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let wanted = world.send(1, World::wanted(&[(root, Shared)]));
    let (callback, _) = world.recall(0);
    // The holder returns the lease without a recall, and requests it again.
    world.release_all(0, &[root]);
    assert!(!world.is_waiting(wanted));
    let again = world.send(0, World::wanted(&[(root, Exclusive)]));
    let (other, _) = world.recall(1);
    world.answer(other, &[]);
    assert!(world.is_waiting(again));
    world.answer(callback, &[]);
    assert!(!world.is_waiting(again));
    // While an exclusive lease is recalled, responses do not promise it.
    world.send(1, World::wanted(&[(root, Shared)]));
    match world.ask(0, World::look_up(root, &[], Exclusive)) {
        Response::Found { start, .. } => assert_eq!(start.lease, Shared),
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-4: a client that does not answer is fenced once its term has passed, not before; failed
/// calls are repeated.
#[test]
fn a_session_that_does_not_answer_is_fenced_at_its_term() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.pass(TERM / 2);
    world.lease(0, &[(root, Exclusive)]);
    let heard = world.now;
    world.pass(TERM / 2);
    let wanted = world.send(1, World::wanted(&[(root, Exclusive)]));
    let mut attempts = 0;
    while world.is_waiting(wanted) {
        if let Some((token, Callback::Recall { .. })) = world.callback(0) {
            attempts += 1;
            world.fail_callback(token);
        }
        world.now = world.server.next_deadline().unwrap();
        assert!(world.now <= heard + TERM);
        world.poll();
    }
    assert_eq!(world.now, heard + TERM);
    assert!(attempts > 2);
    let session = world.clients[&0].session;
    assert_eq!(world.callback(0).map(|(_, fence)| fence), Some(Callback::Fence { session }));
    let ino = world.new_ino(0);
    let batch = world.batch(0, &[World::create(root, "late", ino, NewNode::File)]);
    assert_eq!(world.ask(0, batch), Response::Failed(Failure::SessionEnded));
    assert_eq!(world.callback(0), None);
}

/// FSSERVE-4: requests are no progress.
#[test]
fn a_session_that_renews_and_does_not_answer_is_fenced_after_a_term() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let wanted = world.send(1, World::wanted(&[(root, Exclusive)]));
    for step in 0..9 {
        assert!(world.is_waiting(wanted));
        world.pass(TERM / 10);
        assert_eq!(world.ask(0, SessionRequest::Renew), Response::Done, "{step}");
    }
    world.pass(TERM / 10);
    assert!(!world.is_waiting(wanted));
    assert_eq!(world.ask(0, SessionRequest::Renew), Response::Failed(Failure::SessionEnded));
}

/// FSSERVE-4: tiny batches win a client three terms, and no more.
#[test]
fn a_session_that_trickles_is_fenced_after_three_terms() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let wanted = world.send(1, World::wanted(&[(root, Exclusive)]));
    let trickles = |world: &mut World, times: u32| {
        for _ in 0..times {
            assert!(world.is_waiting(wanted));
            let ino = world.new_ino(0);
            let create = World::create(root, &format!("{ino}"), ino, NewNode::File);
            world.apply(0, &[create], b"");
            assert_eq!(world.ask(1, SessionRequest::Renew), Response::Done);
            world.pass(TERM / 10);
        }
    };
    trickles(&mut world, 30);
    assert!(!world.is_waiting(wanted));
}

/// FSSERVE-4: a client that flushes a large log keeps its session, up to fourteen terms.
#[test]
fn a_session_that_sends_its_changes_is_fenced_late() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let file = world.create_file(0, root, "large");
    let wanted = world.send(1, World::wanted(&[(root, Exclusive)]));
    let data = Data { start: 0, length: 1 << 20 };
    let write = Record::Write { file, offset: 0, data, time: Time::default() };
    for _ in 0..13 {
        world.apply(0, std::slice::from_ref(&write), &vec![7; 1 << 20]);
        world.pass(TERM / 2);
        for id in [0, 1] {
            assert_eq!(world.ask(id, SessionRequest::Renew), Response::Done);
        }
        world.pass(TERM / 2);
        assert!(world.is_waiting(wanted));
    }
    for _ in 0..2 {
        assert_eq!(world.ask(0, SessionRequest::Renew), Response::Done);
        world.pass(TERM / 2);
    }
    assert!(!world.is_waiting(wanted));
}

/// FSSERVE-4: the leases of a session that was silent for a term are free at once.
#[test]
fn a_session_that_is_silent_already_is_not_called() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    world.pass(TERM);
    world.lease(1, &[(root, Exclusive)]);
    let session = world.clients[&0].session;
    assert_eq!(world.callback(0).map(|(_, fence)| fence), Some(Callback::Fence { session }));
}

#[test]
fn a_client_that_does_not_know_the_session_has_no_leases() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let wanted = world.send(1, World::wanted(&[(root, Exclusive)]));
    let (callback, _) = world.recall(0);
    let unknown = encode(&CallbackResponse::UnknownSession);
    world.server.handle_callback_response(world.now, callback, Some(unknown));
    world.poll();
    assert!(!world.is_waiting(wanted));
    // A client that has not received its Welcome yet will have the session.
    world.release_all(1, &[root]);
    world.join(2);
    let wanted = world.send(1, World::wanted(&[(root, Exclusive)]));
    let (callback, _) = world.recall(2);
    let unknown = encode(&CallbackResponse::UnknownSession);
    world.server.handle_callback_response(world.now, callback, Some(unknown));
    assert!(world.is_waiting(wanted));
    assert_eq!(world.ask(2, SessionRequest::Renew), Response::Done);
    world.pass(TERM / 10);
    let (callback, _) = world.recall(2);
    world.answer(callback, &[]);
    assert!(!world.is_waiting(wanted));
}

/// A recall names all nodes that are needed at that time, and the next nodes follow without waiting
/// for the first answer.
#[test]
fn recalls_are_collected() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let files: Vec<Handle> =
        (0..10).map(|n| world.create_file(0, root, &format!("file {n}"))).collect();
    let wanted: Vec<_> = files[..8].iter().map(|file| (*file, Exclusive)).collect();
    let call = world.send(1, World::wanted(&wanted));
    let next = world.send(1, World::wanted(&[(files[8], Exclusive), (files[0], Exclusive)]));
    let (first, nodes) = world.recall(0);
    assert_eq!(nodes.len(), 8);
    let (second, nodes) = world.recall(0);
    assert_eq!((nodes.len(), nodes[0].node), (1, files[8]));
    world.answer(second, &[]);
    assert!(world.is_waiting(call) && world.is_waiting(next));
    world.answer(first, &[]);
    assert!(!world.is_waiting(call) && !world.is_waiting(next));
}
