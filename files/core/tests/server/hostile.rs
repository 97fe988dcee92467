//! Arbitrary requests of clients: no panic, one response to each request, and leases that exclude
//! each other.

use apus_fs_core::wire::frame::encode;
use apus_fs_core::wire::{
    Batch, Data, Errno, Failure, Handle, Hello, Ino, LeaseKind, ListTree, Lock, LockKind,
    LockOwner, LockRange, LookUp, NewNode, NodeRange, Record, Request, Response, SeekTarget,
    SessionRequest, SetAttributes, Time, Version,
};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

use crate::world::{World, name};

const CLIENTS: usize = 3;

/// A step of a random history.
#[derive(Clone, Debug)]
enum HostileStep {
    Request {
        client: usize,
        request: SessionRequest,
    },
    Bytes {
        client: usize,
        bytes: Vec<u8>,
    },
    Hello {
        client: usize,
        resumes: bool,
    },
    Pass {
        milliseconds: u64,
    },
    /// Answers the next callback of a client, or has it fail.
    Answer {
        client: usize,
        answer: Option<Vec<Handle>>,
    },
    Poll,
    Restart,
}

/// Handles of few nodes, which collide: numbers of the first ranges, found nodes, and nonsense.
fn handle() -> impl Strategy<Value = Handle> {
    let ino = prop_oneof![4 => node().prop_map(|ino| ino.0), 1 => any::<u64>()];
    let proof = prop_oneof![8 => Just(true), 1 => Just(false)];
    // The test fills in the proof: it has the handles that the server has made.
    (ino, proof).prop_map(|(ino, proof)| Handle { ino: Ino(ino), proof: u64::from(proof) })
}

fn node() -> impl Strategy<Value = Ino> {
    let ranges = (0..3u64, 0..4u64).prop_map(|(range, at)| (1 << 20) + range * 1_000 + at);
    prop_oneof![2 => Just(1), 3 => ranges].prop_map(Ino)
}

fn kind() -> impl Strategy<Value = LeaseKind> {
    prop_oneof![Just(LeaseKind::None), Just(LeaseKind::Shared), Just(LeaseKind::Exclusive)]
}

fn named() -> impl Strategy<Value = apus_fs_core::wire::Name> {
    prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(name)
}

fn record() -> impl Strategy<Value = Record> {
    let time = Time::default();
    let new = prop_oneof![
        Just(NewNode::File),
        Just(NewNode::Directory),
        Just(NewNode::Symlink { target: "a".into() }),
    ];
    let create = (proptest::option::of((handle(), named())), node(), new).prop_map(
        move |(parent, ino, node)| Record::Create {
            parent,
            ino,
            node,
            mode: 0o644,
            uid: 0,
            gid: 0,
            time,
        },
    );
    let rename =
        ((handle(), named()), (handle(), named()), handle(), proptest::option::of(handle()));
    let data = Data { start: 0, length: 4 };
    prop_oneof![
        4 => create,
        1 => (handle(), handle(), named())
            .prop_map(|(node, parent, name)| Record::Link { node, parent, name }),
        2 => (handle(), named(), handle())
            .prop_map(|(parent, name, node)| Record::Unlink { parent, name, node }),
        1 => (handle(), named(), handle())
            .prop_map(|(parent, name, node)| Record::RemoveDirectory { parent, name, node }),
        1 => (rename, any::<bool>()).prop_map(|((from, to, node, replaced), exchange)| {
            Record::Rename { from, to, node, replaced, exchange }
        }),
        2 => (handle(), 0..100u64)
            .prop_map(move |(file, offset)| Record::Write { file, offset, data, time }),
        1 => handle()
            .prop_map(|node| Record::SetAttributes { node, set: SetAttributes::default() }),
        2 => handle().prop_map(|node| Record::Close { node }),
    ]
}

fn lock() -> impl Strategy<Value = Lock> {
    let kind = prop_oneof![Just(LockKind::Read), Just(LockKind::Write), Just(LockKind::Unlock)];
    let owner =
        (0..2u64, any::<bool>()).prop_map(|(owner, is_flock)| LockOwner { owner, is_flock });
    (handle(), owner, kind, 0..5u64, 0..5u64, any::<bool>()).prop_map(
        |(file, owner, kind, start, length, wait)| {
            let range = LockRange { start, end: start + length };
            Lock { file, owner, kind, range, wait, reclaim: !wait }
        },
    )
}

fn request() -> impl Strategy<Value = SessionRequest> {
    let look_up = (handle(), vec(named(), 0..3), kind()).prop_map(|(start, path, lease)| LookUp {
        start,
        path,
        lease,
        inline: 100,
    });
    let list =
        (handle(), 0..3u16, 0..5u32, kind()).prop_map(|(directory, depth, entries, lease)| {
            ListTree {
                directory,
                after: None,
                depth,
                entries,
                inline: 10,
                inline_total: 100,
                lease,
            }
        });
    prop_oneof![
        1 => Just(SessionRequest::Renew),
        1 => Just(SessionRequest::Goodbye),
        1 => vec((handle(), kind(), Just(Version::default())), 0..3)
            .prop_map(|leases| SessionRequest::Reclaim { leases }),
        4 => look_up.prop_map(SessionRequest::LookUp),
        3 => list.prop_map(SessionRequest::ListTree),
        2 => vec(handle(), 0..3).prop_map(|files| SessionRequest::Read {
            ranges: files
                .into_iter()
                .map(|file| NodeRange { file, offset: 0, length: 10 })
                .collect(),
        }),
        // The numbers of batches are filled in by the test, as distances to the next one.
        8 => (prop_oneof![6 => Just(1u64), 1 => 0..4u64], vec(record(), 0..5))
            .prop_map(|(number, records)| SessionRequest::Batch(Batch { number, records, returns: vec![] })),
        6 => vec((handle(), kind()), 0..4).prop_map(|wanted| World::wanted(&wanted)),
        1 => vec((handle(), kind()), 0..3)
            .prop_map(|leases| SessionRequest::Release { leases }),
        2 => lock().prop_map(SessionRequest::Lock),
        1 => lock().prop_map(SessionRequest::TestLock),
        1 => lock().prop_map(|lock| SessionRequest::CancelLock {
            file: lock.file,
            owner: lock.owner,
        }),
        1 => handle().prop_map(|node| SessionRequest::ListXattr { node }),
        1 => handle().prop_map(|file| SessionRequest::Seek {
            file,
            offset: 3,
            target: SeekTarget::Data,
        }),
        1 => Just(SessionRequest::StatFs),
        1 => Just(SessionRequest::Status),
    ]
}

fn step() -> impl Strategy<Value = HostileStep> {
    let client = 0..CLIENTS;
    prop_oneof![
        20 => (client.clone(), request())
            .prop_map(|(client, request)| HostileStep::Request { client, request }),
        1 => (client.clone(), vec(any::<u8>(), 0..40))
            .prop_map(|(client, bytes)| HostileStep::Bytes { client, bytes }),
        1 => (client.clone(), any::<bool>())
            .prop_map(|(client, resumes)| HostileStep::Hello { client, resumes }),
        1 => (0..4_000u64).prop_map(|milliseconds| HostileStep::Pass { milliseconds }),
        6 => (client, proptest::option::weighted(0.8, vec(handle(), 0..3)))
            .prop_map(|(client, answer)| HostileStep::Answer { client, answer }),
        4 => Just(HostileStep::Poll),
        1 => Just(HostileStep::Restart),
    ]
}

/// Puts proofs into handles: 1 becomes the right proof, where the world has it.
fn prove(world: &World, handle: &mut Handle) {
    if handle.proof == 1 {
        handle.proof = world.handles.get(&handle.ino).map_or(0, |known| known.proof);
    }
}

fn prove_all(world: &World, request: &mut SessionRequest) {
    let prove = |handle: &mut Handle| prove(world, handle);
    match request {
        SessionRequest::LookUp(look_up) => prove(&mut look_up.start),
        SessionRequest::ListTree(list) => prove(&mut list.directory),
        SessionRequest::Lease { wanted } => {
            wanted.iter_mut().for_each(|lease| prove(&mut lease.node));
        }
        SessionRequest::Reclaim { leases } => {
            leases.iter_mut().for_each(|lease| prove(&mut lease.0));
        }
        SessionRequest::Lock(lock) | SessionRequest::TestLock(lock) => prove(&mut lock.file),
        SessionRequest::Read { ranges } => {
            ranges.iter_mut().for_each(|range| prove(&mut range.file));
        }
        SessionRequest::Batch(batch) => {
            for record in &mut batch.records {
                match record {
                    Record::Create { parent: Some((parent, _)), .. } => prove(parent),
                    Record::Link { node, parent, .. }
                    | Record::Unlink { node, parent, .. }
                    | Record::RemoveDirectory { node, parent, .. } => {
                        prove(node);
                        prove(parent);
                    }
                    Record::Rename { from, to, node, replaced, .. } => {
                        prove(&mut from.0);
                        prove(&mut to.0);
                        prove(node);
                        replaced.iter_mut().for_each(prove);
                    }
                    Record::Write { file: node, .. }
                    | Record::SetAttributes { node, .. }
                    | Record::Close { node } => prove(node),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn take_step(world: &mut World, step: HostileStep) {
    match step {
        HostileStep::Request { client, mut request } => {
            prove_all(world, &mut request);
            if let SessionRequest::Reclaim { leases } = &mut request {
                for (node, kind, _) in leases {
                    *kind = world.copies.claim(client, node.ino, world.now).min(*kind);
                }
            }
            if let SessionRequest::Batch(batch) = &mut request {
                let state = world.clients.get_mut(&client).unwrap();
                batch.number = (state.batches + batch.number).saturating_sub(1) + 1;
                state.batches = state.batches.max(batch.number);
            }
            world.send_with(client, request, b"1234");
        }
        HostileStep::Bytes { client, bytes } => {
            let call = world.send_bytes(client, bytes.into());
            assert!(!world.is_waiting(call));
        }
        HostileStep::Hello { client, resumes } => {
            let session = resumes.then_some(world.clients[&client].session);
            let ranges = vec![world.range(client)];
            let hello = Hello { session, ranges, ..World::hello(client) };
            world.greet(client, hello).unwrap();
        }
        HostileStep::Pass { milliseconds } => world.pass(Duration::from_millis(milliseconds)),
        HostileStep::Answer { client, answer } => {
            if let Some((callback, _)) = world.callback(client) {
                match answer {
                    Some(mut open) => {
                        open.iter_mut().for_each(|handle| prove(world, handle));
                        world.answer(callback, &open);
                    }
                    None => world.fail_callback(callback),
                }
            }
        }
        HostileStep::Poll => world.poll(),
        HostileStep::Restart => {
            world.restart();
            // Two clients return at once; the third one later, or not at all.
            for client in 0..2 {
                let hello = Hello { ranges: vec![world.range(client)], ..World::hello(client) };
                world.greet(client, hello).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// FSSERVE-1 to FSSERVE-6 and FSSERVE-11 as clients observe them: after each step, no leased
    /// copy is out of date. The store asserts FSSERVE-8 and FSSERVE-10. FSSERVE-12: when all
    /// sessions have ended, each request has its response.
    #[test]
    fn random_requests_do_no_harm(steps in vec(step(), 1..120)) {
        let mut world = World::new();
        (0..CLIENTS).for_each(|id| { world.join(id); });
        for step in steps {
            take_step(&mut world, step);
            world.check_copies();
        }
        world.pass(Duration::from_secs(200));
        prop_assert_eq!(world.unanswered(), 0);
        prop_assert_eq!(world.server.next_deadline(), None);
        // No state of the sessions is left.
        world.join(7);
        match world.ask(7, SessionRequest::Status) {
            Response::Status(status) => {
                prop_assert_eq!((status.clients.len(), status.waiting.len()), (1, 0));
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(apus_fs_core::Store::orphans(world.server.store()).is_empty());
    }

    #[test]
    fn random_bytes_are_answered(bytes in vec(any::<u8>(), 0..200)) {
        let mut world = World::new();
        let call = world.send_bytes(0, bytes.into());
        prop_assert!(world.response(call).is_some());
    }
}

#[test]
fn a_message_that_is_cut_off_is_malformed() {
    let mut world = World::with_clients(1);
    let session = world.clients[&0].session;
    let request = SessionRequest::ListXattr { node: world.root };
    let message = encode(&Request::Of { session, request });
    for length in 0..message.len() {
        let call = world.send_bytes(0, Bytes::copy_from_slice(&message[..length]));
        assert_eq!(world.response(call), Some(Response::Failed(Failure::Malformed)));
    }
}

/// FSSERVE-12: requests of one session that wait are bounded.
#[test]
fn a_client_cannot_make_the_server_remember_too_much() {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, LeaseKind::Exclusive)]);
    let wanted = World::wanted(&[(root, LeaseKind::Shared)]);
    let refused = (0..2_000).filter(|_| {
        let call = world.send(1, wanted.clone());
        match world.response(call) {
            None => false,
            Some(response) => {
                assert_eq!(response, Response::Failed(Failure::Errno(Errno::AGAIN)));
                true
            }
        }
    });
    assert_eq!(refused.count(), 2_000 - 1_024);
    let (callback, _) = world.recall(0);
    world.answer(callback, &[]);
    assert_eq!(world.unanswered(), 0);
}
