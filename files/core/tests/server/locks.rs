//! Locks of byte ranges and of files.

use apus_fs_core::server::CallToken;
use apus_fs_core::wire::{
    Callback, Errno, Failure, Handle, LeaseKind, Lock, LockConflict, LockKind, LockOwner,
    LockRange, Response, SessionRequest,
};
use proptest::prelude::*;

use crate::world::{Id, TERM, World};

use LockKind::{Read, Unlock, Write};

const FREE: Option<Response> = Some(Response::Locked(None));

struct Locks {
    world: World,
    file: Handle,
}

impl Locks {
    fn new(clients: Id) -> Self {
        let mut world = World::with_clients(clients);
        let root = world.root;
        world.lease(0, &[(root, LeaseKind::Exclusive)]);
        let file = world.create_file(0, root, "file");
        Self { world, file }
    }

    fn request(&self, owner: u64, is_flock: bool, kind: LockKind, range: (u64, u64)) -> Lock {
        let owner = LockOwner { owner, is_flock };
        let range = LockRange { start: range.0, end: range.1 };
        Lock { file: self.file, owner, kind, range, wait: true, reclaim: false }
    }

    fn send(&mut self, id: Id, owner: u64, kind: LockKind, range: (u64, u64)) -> CallToken {
        let lock = self.request(owner, false, kind, range);
        self.world.send(id, SessionRequest::Lock(lock))
    }

    fn lock(&mut self, id: Id, owner: u64, kind: LockKind, range: (u64, u64)) -> Option<Response> {
        let call = self.send(id, owner, kind, range);
        self.world.response(call)
    }

    fn flock(&mut self, id: Id, owner: u64, kind: LockKind) -> CallToken {
        let lock = self.request(owner, true, kind, (3, 4));
        self.world.send(id, SessionRequest::Lock(lock))
    }

    fn test(&mut self, id: Id, kind: LockKind, range: (u64, u64)) -> Option<LockConflict> {
        let lock = self.request(77, false, kind, range);
        match self.world.ask(id, SessionRequest::TestLock(lock)) {
            Response::Locked(conflict) => conflict,
            other => panic!("{other:?}"),
        }
    }
}

/// FS-3.
#[test]
fn locks_conflict_where_ranges_overlap() {
    let mut locks = Locks::new(2);
    assert_eq!(locks.lock(0, 1, Write, (10, 19)), FREE);
    assert_eq!(locks.lock(1, 1, Read, (20, u64::MAX)), FREE);
    let conflict = locks.test(1, Read, (0, 10)).unwrap();
    assert_eq!((conflict.kind, conflict.range), (Write, LockRange { start: 10, end: 19 }));
    assert_eq!(locks.test(0, Read, (20, 30)), None);
    assert!(locks.test(0, Write, (20, 30)).is_some());
    let lock = Lock { wait: false, ..locks.request(1, false, Read, (0, 15)) };
    let refused = locks.world.ask(1, SessionRequest::Lock(lock));
    assert!(matches!(refused, Response::Locked(Some(_))));
    // Unlocking the middle leaves both ends.
    assert_eq!(locks.lock(0, 1, Unlock, (12, 15)), FREE);
    assert_eq!(locks.test(1, Write, (12, 15)), None);
    assert!(locks.test(1, Write, (11, 11)).is_some() && locks.test(1, Write, (16, 16)).is_some());
}

#[test]
fn a_lock_waits_until_it_is_free() {
    let mut locks = Locks::new(3);
    assert_eq!(locks.lock(0, 1, Write, (0, 9)), FREE);
    let second = locks.send(1, 1, Write, (5, 9));
    let third = locks.send(2, 1, Write, (5, 9));
    assert!(locks.world.is_waiting(second));
    // Weakening a lock frees it, as unlocking does.
    assert_eq!(locks.lock(0, 1, Read, (0, 9)), FREE);
    assert!(locks.world.is_waiting(second));
    assert_eq!(locks.lock(0, 1, Unlock, (0, 9)), FREE);
    assert_eq!(locks.world.response(second), FREE);
    assert!(locks.world.is_waiting(third));
    let owner = LockOwner { owner: 1, is_flock: false };
    let cancel = SessionRequest::CancelLock { file: locks.file, owner };
    assert_eq!(locks.world.ask(2, cancel), Response::Done);
    let interrupted = Response::Failed(Failure::Errno(Errno::INTR));
    assert_eq!(locks.world.response(third), Some(interrupted));
}

#[test]
fn locks_end_with_their_session() {
    let mut locks = Locks::new(2);
    assert_eq!(locks.lock(0, 1, Write, (0, 9)), FREE);
    let waiting = locks.send(1, 1, Write, (0, 0));
    locks.world.ask(0, SessionRequest::Goodbye);
    assert_eq!(locks.world.response(waiting), FREE);
}

/// FSSERVE-4: a session is fenced also for its locks.
#[test]
fn a_lock_of_a_silent_session_is_free_after_its_term() {
    let mut locks = Locks::new(2);
    assert_eq!(locks.lock(0, 1, Write, (0, 9)), FREE);
    locks.world.pass(TERM / 2);
    let waiting = locks.send(1, 1, Write, (0, 0));
    locks.world.pass(TERM / 2);
    assert_eq!(locks.world.response(waiting), FREE);
    let fence = locks.world.callback(0).map(|(_, fence)| fence);
    assert!(matches!(fence, Some(Callback::Fence { .. })));
    locks.world.pass(TERM);
    locks.world.join(0);
    assert_eq!(locks.test(0, Write, (0, 0)), None);
}

#[test]
fn a_deadlock_is_refused() {
    let mut locks = Locks::new(3);
    for id in 0..3 {
        assert_eq!(locks.lock(id, 1, Write, (id as u64, id as u64)), FREE);
    }
    let first = locks.send(0, 1, Write, (1, 1));
    let second = locks.send(1, 1, Write, (2, 2));
    let deadlock = Response::Failed(Failure::Errno(Errno::DEADLK));
    assert_eq!(locks.lock(2, 1, Write, (0, 0)), Some(deadlock));
    assert_eq!(locks.lock(2, 1, Unlock, (2, 2)), FREE);
    assert_eq!(locks.world.response(second), FREE);
    assert!(locks.world.is_waiting(first));
}

#[test]
fn flock_covers_the_file_and_ignores_fcntl() {
    let mut locks = Locks::new(2);
    assert_eq!(locks.lock(0, 1, Write, (0, u64::MAX)), FREE);
    let shared = [locks.flock(0, 1, Read), locks.flock(1, 1, Read)];
    for call in shared {
        assert_eq!(locks.world.response(call), FREE);
    }
    // Both raise their locks: each releases its shared one, so there is no deadlock.
    let first = locks.flock(0, 1, Write);
    assert!(locks.world.is_waiting(first));
    let second = locks.flock(1, 1, Write);
    assert_eq!(locks.world.response(first), FREE);
    assert!(locks.world.is_waiting(second));
    let unlock = locks.flock(0, 1, Unlock);
    assert_eq!(locks.world.response(unlock), FREE);
    assert_eq!(locks.world.response(second), FREE);
}

proptest! {
    /// Ranges are split and merged as if each byte had its own lock.
    #[test]
    fn ranges_are_those_of_single_bytes(
        changes in proptest::collection::vec((0..3u8, 0..16u64, 0..16u64), 1..40),
    ) {
        let mut locks = Locks::new(2);
        let mut bytes = [Unlock; 16];
        for (kind, one, other) in changes {
            let kind = [Read, Write, Unlock][usize::from(kind)];
            let (start, end) = (one.min(other), one.max(other));
            prop_assert_eq!(locks.lock(0, 1, kind, (start, end)), FREE);
            bytes[start as usize..=end as usize].fill(kind);
        }
        for (at, kind) in bytes.into_iter().enumerate() {
            let conflict = locks.test(1, Write, (at as u64, at as u64)).map(|lock| lock.kind);
            prop_assert_eq!(conflict, Some(kind).filter(|kind| *kind != Unlock));
        }
    }
}
