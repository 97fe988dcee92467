//! Sessions start, resume and end.

use apus_fs_core::server::ServerSettings;
use apus_fs_core::wire::frame::encode;
use apus_fs_core::wire::{
    Callback, Errno, Failure, Handle, Hello, Ino, LeaseKind, NewNode, Request, Response,
    SessionRequest, WireVersion,
};

use crate::store::SmallStore;
use crate::world::{TERM, World, peer, settings};

fn failed(errno: Errno) -> Response {
    Response::Failed(Failure::Errno(errno))
}

#[test]
fn a_session_begins_with_a_lease_on_the_root() {
    let mut world = World::new();
    let welcome = world.join(0);
    assert_eq!((welcome.resumed, welcome.applied, welcome.term_ms), (false, 0, 10_000));
    assert_eq!((welcome.root.lease, welcome.session), (LeaseKind::Shared, welcome.first_ino));
    let second = world.join(1);
    assert_eq!(second.root.lease, LeaseKind::Shared);
    assert!(second.session > welcome.session);
    assert!(second.first_ino >= welcome.first_ino + welcome.inos);
}

#[test]
fn a_version_that_is_not_understood_is_refused_by_name() {
    let mut world = World::new();
    let hello = Hello { oldest: WireVersion(2), newest: WireVersion(3), ..World::hello(0) };
    let versions = Failure::Version { oldest: WireVersion::OLDEST, newest: WireVersion::CURRENT };
    assert_eq!(world.greet(0, hello), Err(versions));
    let hello = Hello { newest: WireVersion(3), ..World::hello(0) };
    assert_eq!(world.greet(0, hello).unwrap().version, WireVersion::CURRENT);
}

#[test]
fn a_session_is_resumed_by_its_client_only() {
    let mut world = World::with_clients(1);
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    let session = world.clients[&0].session;
    let again = Hello { session: Some(session), ..World::hello(0) };
    let welcome = world.greet(0, again).unwrap();
    assert_eq!((welcome.resumed, welcome.session), (true, session));
    assert_eq!(welcome.root.lease, LeaseKind::Exclusive);
    assert!(welcome.first_ino > session);
    // Neither another client nor another address can take it over.
    let theft = Hello { session: Some(session), ..World::hello(1) };
    assert!(!world.greet(1, theft).unwrap().resumed);
    world.clients.get_mut(&1).unwrap().session = session;
    let ended = Response::Failed(Failure::SessionEnded);
    assert_eq!(world.ask(1, SessionRequest::Renew), ended);
    assert_eq!(world.ask(0, SessionRequest::Renew), Response::Done);
}

#[test]
fn a_new_session_ends_the_older_one_of_the_same_client() {
    let mut world = World::with_clients(1);
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    let older = world.clients[&0].session;
    let welcome = world.join(0);
    assert!(!welcome.resumed && welcome.session > older);
    assert_eq!(welcome.root.lease, LeaseKind::Shared);
    let request = Request::Of { session: older, request: SessionRequest::Renew };
    let call = world.send_bytes(0, encode(&request));
    assert_eq!(world.response(call), Some(Response::Failed(Failure::SessionEnded)));
}

/// FSSERVE-12: the number of sessions is bounded. A session that was silent for a term makes room.
#[test]
fn there_is_a_maximum_of_sessions() {
    let settings = ServerSettings { max_sessions: 2, ..settings() };
    let mut world = World::with(SmallStore::new(), settings);
    world.join(0);
    world.pass(TERM / 2);
    world.join(1);
    assert_eq!(world.greet(2, World::hello(2)), Err(Failure::TooManySessions));
    world.pass(TERM / 2);
    assert!(world.greet(2, World::hello(2)).is_ok());
    let session = world.clients[&0].session;
    assert_eq!(world.callback(0).map(|(_, call)| call), Some(Callback::Fence { session }));
    assert_eq!(world.ask(0, SessionRequest::Renew), Response::Failed(Failure::SessionEnded));
    assert_eq!(world.ask(1, SessionRequest::Renew), Response::Done);
}

/// FSSERVE-12: one host has a quarter of the sessions, and cannot keep others out.
#[test]
fn a_host_leaves_sessions_to_others() {
    let settings = ServerSettings { max_sessions: 128, ..settings() };
    let mut world = World::with(SmallStore::new(), settings);
    let mut greet = |id: usize| {
        let client = (id as u128).to_be_bytes();
        world.greet(id, Hello { client, ..World::hello(0) }).map(|_| ())
    };
    for id in 0..32 {
        assert_eq!(greet(id), Ok(()));
    }
    assert_eq!(greet(32), Err(Failure::TooManySessions));
    // The last quarter of all is for hosts that have few.
    for (host, sessions) in [(1, 32), (2, 32), (3, 16)] {
        assert_eq!((0..40).filter(|at| greet(host << 8 | at).is_ok()).count(), sessions);
    }
}

/// FSSERVE-4: silence alone does not end a session before the client is certainly gone for good.
#[test]
fn a_silent_session_lasts_while_its_leases_are_not_needed() {
    let mut world = World::with_clients(1);
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    world.pass(TERM * 9);
    assert_eq!(world.ask(0, SessionRequest::Renew), Response::Done);
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    world.pass(TERM * 10);
    assert_eq!(world.ask(0, SessionRequest::Renew), Response::Failed(Failure::SessionEnded));
    assert_eq!(world.server.next_deadline(), None);
}

/// FSSERVE-13.
#[test]
fn a_client_reaches_only_nodes_that_were_named_to_it() {
    let mut world = World::with_clients(2);
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    let ino = world.new_ino(0);
    let root = world.root;
    world.apply(0, &[World::create(root, "file", ino, NewNode::File)], b"");
    let own = World::look_up(Handle::created(ino), &[], LeaseKind::None);
    assert!(matches!(world.ask(0, own.clone()), Response::Found { .. }));
    assert_eq!(world.ask(1, own), failed(Errno::STALE));
    for proof in [1, root.proof] {
        let guessed = Handle { ino, proof };
        let look_up = World::look_up(guessed, &[], LeaseKind::None);
        assert_eq!(world.ask(1, look_up), failed(Errno::STALE));
        let leased = world.ask(1, World::wanted(&[(guessed, LeaseKind::Shared)]));
        assert_eq!(
            leased,
            Response::Leased { leases: vec![(LeaseKind::None, None)], lent: vec![] }
        );
    }
}

/// FSSERVE-13: numbers of an earlier session are proven.
#[test]
fn ranges_of_earlier_sessions_are_accepted_with_their_proof() {
    let mut world = World::with_clients(1);
    let mut range = world.range(0);
    let hello = Hello { ranges: vec![range], ..World::hello(0) };
    world.greet(0, hello).unwrap();
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    let root = world.root;
    let create = |name, ino| [World::create(root, name, Ino(ino), NewNode::File)];
    world.apply(0, &create("old range", range.first + 7), b"");
    range.count += 1_000_000;
    let hello = Hello { ranges: vec![range], ..World::hello(0) };
    world.greet(0, hello).unwrap();
    world.lease(0, &[(world.root, LeaseKind::Exclusive)]);
    let batch = world.batch(0, &create("forged range", range.first + 9));
    assert_eq!(world.ask(0, batch), failed(Errno::INVAL));
}

#[test]
fn goodbye_frees_everything_and_requests_of_the_session_end() {
    let mut world = World::with_clients(3);
    let root = world.root;
    world.lease(0, &[(root, LeaseKind::Exclusive)]);
    let second = world.send(1, World::wanted(&[(root, LeaseKind::Exclusive)]));
    let third = world.send(2, World::wanted(&[(root, LeaseKind::Exclusive)]));
    assert_eq!(world.ask(1, SessionRequest::Goodbye), Response::Done);
    assert_eq!(world.response(second), Some(Response::Failed(Failure::SessionEnded)));
    assert!(world.is_waiting(third));
    assert_eq!(world.ask(0, SessionRequest::Goodbye), Response::Done);
    assert!(matches!(world.response(third), Some(Response::Leased { .. })));
    assert_eq!(peer(0).port(), 0);
}
