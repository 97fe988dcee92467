//! A server with arbitrary responses: the client neither panics nor loses an operation (FSCLIENT-1,
//! FSCLIENT-6).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apus_fs_core::client::{
    AttributeChange, Caller, Client, ClientEffect, ClientSettings, Clock, Lost, OpToken, Operation,
    Place, ServerCallback,
};
use apus_fs_core::store::ClientId;
use apus_fs_core::wire::frame::encode;
use apus_fs_core::wire::{
    AllocateMode, Attributes, BatchDone, Callback, Errno, FailedBatch, Failure, FoundNode, Handle,
    Ino, LeaseKind, Listing, LockKind, LockOwner, LockRange, Name, NewNode, NodeKind, PathStep,
    RecalledNode, Response, SeekTarget, Time, Version, Welcome, WireVersion,
};
use bytes::Bytes;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn pick<T: Clone>(random: &mut impl Rng, choices: &[T]) -> T {
    choices[random.random_range(0..choices.len())].clone()
}

fn ino(random: &mut impl Rng) -> Ino {
    Ino(pick(random, &[1, 1, 2, 3, 4, 1_000, 1_001, 1_002, u64::MAX]))
}

fn handle(random: &mut impl Rng) -> Handle {
    Handle { ino: ino(random), proof: random.random_range(0..3) }
}

fn name(random: &mut impl Rng) -> Name {
    Name::new(pick(random, &["a", "b", "c"])).unwrap()
}

fn lease(random: &mut impl Rng) -> LeaseKind {
    pick(random, &[LeaseKind::None, LeaseKind::Shared, LeaseKind::Exclusive])
}

fn attributes(random: &mut impl Rng) -> Attributes {
    let kinds = [NodeKind::File, NodeKind::Directory, NodeKind::Symlink, NodeKind::Fifo];
    Attributes {
        kind: pick(random, &kinds),
        mode: 0o7777,
        links: pick(random, &[0, 1, 2, u32::MAX]),
        uid: 0,
        gid: 0,
        device: u64::MAX,
        size: pick(random, &[0, 5, 100_000, i64::MAX as u64]),
        blocks: u64::MAX,
        atime: Time { seconds: i64::MIN, nanoseconds: 0 },
        mtime: Time { seconds: i64::MAX, nanoseconds: 999_999_999 },
        ctime: Time::default(),
        btime: None,
        has_xattrs: random.random(),
        version: Version { change: random.random_range(0..3), data: random.random_range(0..3) },
    }
}

fn entry(random: &mut impl Rng) -> FoundNode {
    let contents = random.random::<bool>().then(|| Bytes::from_static(b"contents"));
    FoundNode {
        handle: handle(random),
        attributes: attributes(random),
        lease: lease(random),
        contents,
    }
}

fn response(random: &mut impl Rng) -> (Response, Bytes) {
    let response = match random.random_range(0..16) {
        0 => Response::Failed(pick(
            random,
            &[
                Failure::SessionEnded,
                Failure::Malformed,
                Failure::TooManySessions,
                Failure::Errno(Errno::STALE),
                Failure::BatchOutOfOrder { expected: 7 },
            ],
        )),
        1 => Response::Done,
        2..5 => Response::Welcome(Welcome {
            version: WireVersion::CURRENT,
            session: random.random_range(0..3),
            resumed: random.random(),
            term_ms: pick(random, &[0, 10_000, u32::MAX]),
            root: entry(random),
            first_ino: pick(random, &[1_000, 0, u64::MAX]),
            inos: pick(random, &[100_000, 3, 0, u64::MAX]),
            inos_proof: 0,
            applied: pick(random, &[0, 0, 1, 2, u64::MAX]),
            read_only: false,
            failed: random.random::<bool>().then(|| FailedBatch {
                number: pick(random, &[0, 1, 2, u64::MAX]),
                record: random.random(),
                error: Errno::NOSPC,
            }),
        }),
        5 => Response::Reclaimed(vec![(lease(random), random.random()); random.random_range(0..4)]),
        6..8 => {
            let steps =
                [PathStep::Found(entry(random)), PathStep::Absent, PathStep::Failed(Errno::ACCES)];
            let steps = (0..random.random_range(0..4)).map(|_| pick(random, &steps)).collect();
            Response::Found { start: entry(random), steps }
        }
        8 => Response::Listed(vec![Listing {
            directory: handle(random),
            attributes: attributes(random),
            lease: lease(random),
            entries: (0..random.random_range(0..4))
                .map(|_| (name(random), entry(random)))
                .collect(),
            is_complete: random.random(),
        }]),
        9 => {
            let bytes = Bytes::from(vec![7; random.random_range(0..100)]);
            return (Response::ReadDone(vec![(bytes.len() as u32, Version::default())]), bytes);
        }
        10..12 => Response::BatchDone(BatchDone {
            applied: pick(random, &[0, 1, 2, 3, u64::MAX]),
            failed: pick(random, &[None, None, Some((u32::MAX, Errno::NOSPC))]),
            changed: vec![(handle(random), attributes(random))],
        }),
        12 => {
            let has = (lease(random), random.random::<bool>().then(|| attributes(random)));
            let leases = vec![has; random.random_range(0..4)];
            let lent = if random.random() { vec![handle(random).ino] } else { vec![] };
            Response::Leased { leases, lent }
        }
        13 => Response::Locked(None),
        14 => Response::Xattrs(vec![Bytes::from_static(b"user.x")]),
        _ => Response::Position(random.random()),
    };
    (response, Bytes::new())
}

fn operation(random: &mut impl Rng) -> Operation {
    let node = ino(random);
    let place = Place { directory: ino(random), name: name(random) };
    let offset = pick(random, &[0, 3, 70_000, i64::MAX as u64, u64::MAX]);
    let owner = LockOwner { owner: 1, is_flock: random.random() };
    let range = LockRange { start: 0, end: u64::MAX };
    match random.random_range(0..22) {
        0 => Operation::LookUp(place),
        1 => Operation::GetAttributes { node },
        2 => {
            let change = AttributeChange { size: Some(offset), ..AttributeChange::default() };
            Operation::SetAttributes { node, change }
        }
        3 => Operation::ReadLink { node },
        4 | 5 => Operation::Create { place, node: NewNode::File, mode: 0o644, open: true },
        6 => Operation::Create { place, node: NewNode::Directory, mode: 0o755, open: false },
        7 => Operation::CreateTemporary { directory: node, mode: 0o600 },
        8 => Operation::Unlink(place),
        9 => Operation::RemoveDirectory(place),
        10 => {
            let to = Place { directory: ino(random), name: name(random) };
            let (exchange, no_replace) = (random.random(), random.random());
            Operation::Rename { from: place, to, exchange, no_replace }
        }
        11 => Operation::Link { node, place },
        12 => Operation::Open { node, truncate: true, writable: true, kill_privileges: true },
        13 => Operation::Read { node, offset, size: u32::MAX },
        14 | 15 => Operation::Write {
            node,
            offset,
            data: Bytes::from_static(b"written"),
            append: random.random(),
            from_cache: random.random(),
            kill_privileges: random.random(),
        },
        16 => Operation::Release { node, writable: true, flock_owner: Some(1) },
        17 => Operation::Sync { node },
        18 => Operation::Lock { node, owner, kind: LockKind::Write, range, wait: true },
        19 => Operation::Allocate { node, mode: AllocateMode::Zero, offset, length: offset },
        20 => Operation::Seek { node, offset, target: SeekTarget::Data },
        _ => {
            let (to, to_offset, length) = (ino(random), offset, offset);
            Operation::CopyRange { from: node, from_offset: 1, to, to_offset, length }
        }
    }
}

fn settings() -> ClientSettings {
    ClientSettings {
        id: ClientId([1; 16]),
        name: Bytes::new(),
        export: Bytes::new(),
        read_only: false,
        lost: Lost::Wait,
        kernel_drops_names: true,
    }
}

#[test]
fn a_server_that_says_anything_does_no_harm() {
    for seed in 0..300 {
        let random = &mut Pcg64::seed_from_u64(seed);
        let mut clock = Clock { now: Duration::from_secs(1), wall: Time::default() };
        let mut client = Client::new(settings(), &clock);
        let mut calls = Vec::new();
        let mut waiting = BTreeSet::new();
        let mut answered = BTreeMap::<OpToken, u32>::new();
        for step in 0..400 {
            clock.now += Duration::from_millis(pick(random, &[0, 1, 10, 3_000]));
            match random.random_range(0..10) {
                0..4 => {
                    let token = OpToken(step);
                    waiting.insert(token);
                    client.submit(&clock, token, Caller { uid: 1, gid: 1 }, operation(random));
                }
                4..8 if !calls.is_empty() => {
                    let call = calls.swap_remove(random.random_range(0..calls.len()));
                    let (response, payload) = response(random);
                    let bytes = [encode(&response), payload].concat().into();
                    let bytes = random.random_ratio(9, 10).then_some(bytes);
                    client.handle_response(&clock, call, bytes);
                }
                8 => {
                    let node = RecalledNode {
                        node: handle(random),
                        keep: lease(random),
                        is_removed: random.random(),
                    };
                    let session = random.random_range(0..3);
                    let callback = match random.random_range(0..4) {
                        0 => Callback::Fence { session },
                        _ => Callback::Recall { session, nodes: vec![node; 2] },
                    };
                    client.handle_callback(&clock, ServerCallback(step), encode(&callback));
                }
                _ => client.poll(&clock),
            }
            while let Some(effect) = client.take_effect() {
                match effect {
                    ClientEffect::Reply { operation, .. } => {
                        assert!(waiting.remove(&operation), "seed {seed}: {operation:?}");
                        *answered.entry(operation).or_default() += 1;
                    }
                    ClientEffect::Call { call, .. } => calls.push(call),
                    ClientEffect::Invalidate { notification, .. } => {
                        client.notified(&clock, notification);
                    }
                    ClientEffect::Answer { .. } | ClientEffect::Warn(_) | ClientEffect::Lost(_) => {
                    }
                }
            }
        }
        for token in std::mem::take(&mut waiting) {
            client.interrupt(&clock, token);
        }
        let interrupted = std::iter::from_fn(|| client.take_effect());
        for effect in interrupted {
            if let ClientEffect::Reply { operation, .. } = effect {
                *answered.entry(operation).or_default() += 1;
            }
        }
        assert!(answered.values().all(|count| *count == 1), "FSCLIENT-1, seed {seed}");
    }
}

/// A server without a common version is refused with a reason, whether or not it reports its
/// versions.
#[test]
fn a_server_of_another_version_is_refused_by_name() {
    let random = &mut Pcg64::seed_from_u64(1);
    let versions = Failure::Version { oldest: WireVersion(7), newest: WireVersion(9) };
    let Response::Welcome(welcome) = std::iter::repeat_with(|| response(random).0)
        .find(|response| matches!(response, Response::Welcome(_)))
        .unwrap()
    else {
        unreachable!()
    };
    let newer = Response::Welcome(Welcome { version: WireVersion(9), ..welcome });
    for (response, said) in [(Response::Failed(versions), "7 to 9"), (newer, "version 9")] {
        let clock = Clock { now: Duration::from_secs(1), wall: Time::default() };
        let mut client = Client::new(settings(), &clock);
        let token = OpToken(1);
        let operation = Operation::GetAttributes { node: Ino::ROOT };
        client.submit(&clock, token, Caller { uid: 0, gid: 0 }, operation);
        let Some(ClientEffect::Call { call, .. }) = client.take_effect() else {
            panic!("no Hello")
        };
        client.handle_response(&clock, call, Some(encode(&response)));
        let Some(ClientEffect::Warn(why)) = client.take_effect() else { panic!("no word") };
        let own = format!("this client {} to {}", WireVersion::OLDEST.0, WireVersion::CURRENT.0);
        assert!(why.contains(said) && why.contains(&own), "{why}");
        let failed = ClientEffect::Reply { operation: token, result: Err(Errno::IO) };
        assert_eq!(client.take_effect(), Some(failed));
    }
}
