//! FS-3, FS-13: locks and restarts of the server.

use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::{Errno, Ino, LockKind, LockOwner, LockRange, Response};
use bytes::Bytes;

use crate::world::World;

fn lock(node: Ino, is_flock: bool, kind: LockKind) -> Operation {
    let owner = LockOwner { owner: 7, is_flock };
    let range = LockRange { start: 0, end: 9 };
    Operation::Lock { node, owner, kind, range, wait: false }
}

/// Two clients with the file open, the first of which has locked it.
fn locked(is_flock: bool) -> (World, Ino) {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    for client in 0..2 {
        world
            .run(
                client,
                Operation::Open {
                    node: file,
                    writable: true,
                    truncate: false,
                    kill_privileges: false,
                },
            )
            .unwrap();
    }
    assert_eq!(world.run(0, lock(file, is_flock, LockKind::Write)), Ok(Reply::Done));
    (world, file)
}

#[test]
fn a_lock_outlives_the_server() {
    for is_flock in [false, true] {
        let (mut world, file) = locked(is_flock);
        world.restart_server(0);
        // It waits for the first client to return, even if that has returned: others may follow.
        let other = world.begin(1, lock(file, is_flock, LockKind::Write));
        assert!(world.ended(1, other).is_none());
        assert_eq!(world.wait(1, other), Err(Errno::AGAIN));
        world.run(0, lock(file, is_flock, LockKind::Unlock)).unwrap();
        assert_eq!(world.run(1, lock(file, is_flock, LockKind::Write)), Ok(Reply::Done));
        // A released lock is not taken again.
        world.restart_server(0);
        assert_eq!(world.run(0, lock(file, is_flock, LockKind::Write)), Err(Errno::AGAIN));
        assert_eq!(world.warnings, [""; 0]);
    }
}

#[test]
fn a_lock_of_a_client_that_returns_too_late_is_lost() {
    let (mut world, file) = locked(false);
    world.cut_off(0, true);
    world.restart_server(0);
    assert_eq!(world.run(1, lock(file, false, LockKind::Write)), Ok(Reply::Done));
    world.cut_off(0, false);
    assert_eq!(world.run(0, lock(file, false, LockKind::Write)), Err(Errno::AGAIN));
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
}

#[test]
fn a_request_that_waits_for_the_end_of_the_grace_period_is_interrupted() {
    let (mut world, file) = locked(false);
    world.restart_server(0);
    let Operation::Lock { node, owner, kind, range, .. } = lock(file, false, LockKind::Write)
    else {
        unreachable!("it is one");
    };
    let wait = world.begin(1, Operation::Lock { node, owner, kind, range, wait: true });
    assert!(world.ended(1, wait).is_none());
    world.interrupt(1, wait);
    assert_eq!(world.wait(1, wait), Err(Errno::INTR));
}

/// FS-3: a signal that arrives while a program unlocks does not leave the lock behind.
#[test]
fn an_unlock_that_is_interrupted_unlocks() {
    for is_flock in [false, true] {
        let (mut world, file) = locked(is_flock);
        world.write(0, file, 0, b"not at the server yet");
        let unlock = lock(file, is_flock, LockKind::Unlock);
        let unlocking = world.begin_unsettled(0, unlock);
        world.interrupt(0, unlocking);
        assert_eq!(world.wait(0, unlocking), Err(Errno::INTR));
        let other = lock(file, is_flock, LockKind::Write);
        assert_eq!(world.run(1, other), Ok(Reply::Done));
    }
}

/// A client whose program receives `EINTR` for its request, although the server has granted the
/// lock.
fn granted_and_interrupted(is_flock: bool) -> (World, Ino) {
    let (mut world, file) = locked(is_flock);
    world.run(0, lock(file, is_flock, LockKind::Unlock)).unwrap();
    world.hold_back(0, |response| *response == Response::Locked(None));
    let locking = world.begin(0, lock(file, is_flock, LockKind::Write));
    world.interrupt(0, locking);
    assert_eq!(world.wait(0, locking), Err(Errno::INTR));
    (world, file)
}

/// FSCLIENT-8.
#[test]
fn a_lock_that_is_granted_after_a_signal_goes_back() {
    for is_flock in [false, true] {
        let (mut world, file) = granted_and_interrupted(is_flock);
        world.release();
        assert_eq!(world.run(1, lock(file, is_flock, LockKind::Write)), Ok(Reply::Done));
        assert_eq!(world.warnings, [""; 0]);
    }
}

/// FSCLIENT-8: a lock from an earlier request is not the lock that is returned.
#[test]
fn a_lock_that_is_asked_for_again_after_a_signal_stays() {
    for is_flock in [false, true] {
        let (mut world, file) = granted_and_interrupted(is_flock);
        let again = world.begin(0, lock(file, is_flock, LockKind::Write));
        assert!(world.ended(0, again).is_none(), "it waits for the response to the first request");
        world.release();
        assert_eq!(world.wait(0, again), Ok(Reply::Done));
        assert_eq!(world.run(1, lock(file, is_flock, LockKind::Write)), Err(Errno::AGAIN));
        world.run(0, lock(file, is_flock, LockKind::Unlock)).unwrap();
        assert_eq!(world.run(1, lock(file, is_flock, LockKind::Write)), Ok(Reply::Done));
    }
}

/// FSCLIENT-8: a lock that the owner had before the request is the owner's afterwards.
#[test]
fn a_signal_during_a_stronger_request_leaves_the_weaker_lock() {
    let (mut world, file) = locked(false);
    world.run(0, lock(file, false, LockKind::Read)).unwrap();
    world.hold_back(0, |response| *response == Response::Locked(None));
    let stronger = world.begin(0, lock(file, false, LockKind::Write));
    world.interrupt(0, stronger);
    world.release();
    assert_eq!(world.run(1, lock(file, false, LockKind::Read)), Ok(Reply::Done));
    assert_eq!(world.run(1, lock(file, false, LockKind::Write)), Err(Errno::AGAIN));
}

fn lock_range(node: Ino, kind: LockKind, start: u64) -> Operation {
    let owner = LockOwner { owner: 7, is_flock: false };
    let range = LockRange { start, end: start + 9 };
    Operation::Lock { node, owner, kind, range, wait: false }
}

/// FSCLIENT-8: the threads of a program are one owner, and a signal may end the requests of
/// several.
#[test]
fn locks_that_are_granted_to_several_threads_after_signals_go_back() {
    let (mut world, file) = locked(false);
    world.hold_back(0, |response| *response == Response::Locked(None));
    let requests = [20, 40].map(|start| {
        let locking = world.begin(0, lock_range(file, LockKind::Write, start));
        assert!(world.ended(0, locking).is_none());
        locking
    });
    for request in requests {
        world.interrupt(0, request);
        assert_eq!(world.wait(0, request), Err(Errno::INTR));
    }
    world.release();
    for start in [20, 40] {
        assert_eq!(
            world.run(1, lock_range(file, LockKind::Write, start)),
            Ok(Reply::Done),
            "bytes from {start}"
        );
    }
    assert_eq!(world.run(1, lock_range(file, LockKind::Write, 0)), Err(Errno::AGAIN));
    assert_eq!(world.warnings, [""; 0]);
}

/// FSCLIENT-8: no lock is requested on bytes outside of the request.
#[test]
fn what_goes_back_is_what_was_asked_for() {
    let (mut world, file) = locked(false);
    world.hold_back(0, |response| *response == Response::Locked(None));
    let locking = world.begin(0, lock_range(file, LockKind::Write, 20));
    world.interrupt(0, locking);
    assert_eq!(world.wait(0, locking), Err(Errno::INTR));
    let before = world.requests[0];
    world.release();
    assert_eq!(world.run(1, lock_range(file, LockKind::Write, 20)), Ok(Reply::Done));
    assert_eq!(world.requests[0], before + 1, "the lock at the beginning is not asked for again");
}

/// FSCLIENT-8: the response is lost because the client greets again, in the same session, before
/// the signal.
#[test]
fn a_lock_whose_response_was_lost_with_a_greeting_goes_back() {
    let (mut world, file) = locked(false);
    world.change_store(|store| store.fail_record_after(0));
    // The end of the grace period, after which locks are granted again.
    assert_eq!(world.run(1, lock(file, false, LockKind::Write)), Err(Errno::AGAIN));
    world
        .hold_back(0, |response| matches!(response, Response::Locked(None) | Response::Welcome(_)));
    let locking = world.begin(0, lock_range(file, LockKind::Write, 20));
    let name = Bytes::from_static(b"user.name");
    let value = Bytes::from_static(b"value");
    let refused = Operation::SetXattr { node: file, name, value, create: false, replace: false };
    let refused = world.begin(0, refused);
    assert_eq!(world.wait(0, refused), Err(Errno::NOSPC), "after it the client greets");
    world.interrupt(0, locking);
    assert_eq!(world.wait(0, locking), Err(Errno::INTR));
    world.release();
    assert_eq!(world.run(1, lock_range(file, LockKind::Write, 20)), Ok(Reply::Done));
    assert_eq!(world.run(1, lock(file, false, LockKind::Write)), Err(Errno::AGAIN));
    assert_eq!(world.warnings, [""; 0]);
}
