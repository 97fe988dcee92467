//! Restarts, lost calls, full disks.

use std::time::Duration;

use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::{Errno, Ino, NewNode, Response};

use crate::world::{World, place, write};

/// FS-7, FS-11, FS-13.
#[test]
fn a_restart_of_the_server_loses_nothing_that_was_written() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"durable");
    world.sync(0, file);
    world.write(0, file, 7, b", and not yet");
    let other = world.create(0, Ino::ROOT, "other");
    world.restart_server(0);
    world.write(0, other, 0, b"after");
    assert_eq!(world.read(0, file), b"durable, and not yet");
    world.sync(0, file);
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(file));
    assert_eq!(world.read(1, file), b"durable, and not yet");
    assert_eq!(world.look_up(1, Ino::ROOT, "other"), Some(other));
    assert_eq!(world.read(1, other), b"after");
    assert_eq!(world.warnings, [""; 0]);
}

/// FS-12: the response to a batch is lost with the server that applied it.
#[test]
fn a_batch_whose_response_was_lost_takes_effect_once() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "log");
    world.sync(0, file);
    for round in 0..10 {
        world.append(0, file, format!("{round};").as_bytes());
        // The batch is sent and applied, and its response is in flight.
        let sync = world.begin_unsettled(0, Operation::Sync { node: file });
        world.deliver_requests();
        world.restart_server(round % 2);
        assert_eq!(world.wait(0, sync), Ok(Reply::Done));
    }
    assert_eq!(world.read(0, file), b"0;1;2;3;4;5;6;7;8;9;");
    world.look_up(1, Ino::ROOT, "log");
    assert_eq!(world.read(1, file), b"0;1;2;3;4;5;6;7;8;9;");
}

/// FS-8: the error is reported once, for the file that lost its changes; earlier changes stay.
#[test]
fn a_full_disk_is_reported_by_fsync() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"early");
    world.sync(0, file);
    world.change_store(|store| store.fail_record_after(0));
    world.write(0, file, 5, b" late");
    assert_eq!(world.run(0, Operation::Sync { node: file }), Err(Errno::NOSPC));
    assert_eq!(world.read(0, file), b"early");
    world.write(0, file, 0, b"E");
    let result = world.run(0, Operation::Sync { node: file });
    assert_eq!(result, Err(Errno::NOSPC), "reported to the file, too");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    assert_eq!(world.read(1, file), b"Early");
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
}

/// FS-14, FS-15: a client whose session ended while another one changed the same file.
#[test]
fn a_client_that_was_away_for_too_long_says_what_it_lost() {
    let mut world = World::new(2);
    let (file, quiet) = (world.create(0, Ino::ROOT, "file"), world.create(0, Ino::ROOT, "quiet"));
    world.write(0, file, 0, b"before");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    world.write(0, file, 0, b"before");
    world.sync(0, file);
    world.cut_off(0, true);
    world.write(0, file, 0, b"unsent");
    world.write(1, file, 0, b"BEFORE");
    assert_eq!(world.read(1, file), b"BEFORE");
    world.cut_off(0, false);
    let sync = world.begin(0, Operation::Sync { node: file });
    assert_eq!(world.wait(0, sync), Err(Errno::IO));
    assert_eq!(world.read(0, file), b"BEFORE");
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    world.write(0, quiet, 0, b"goes on");
    assert!(world.run(0, Operation::Sync { node: quiet }).is_ok());
}

/// FS-14: no other client has made a change in the meantime, so no change is lost.
#[test]
fn a_client_that_returns_in_time_sends_what_it_kept() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.cut_off(0, true);
    world.write(0, file, 0, b"kept");
    let read = world.begin(1, Operation::LookUp(place(Ino::ROOT, "file")));
    assert!(world.ended(1, read).is_none());
    world.cut_off(0, false);
    assert!(matches!(world.wait(1, read), Ok(Reply::Entry(_))));
    assert_eq!(world.read(1, file), b"kept");
    assert_eq!(world.warnings, [""; 0]);
}

/// FS-16.
#[test]
fn an_operation_that_waits_is_interrupted() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"x");
    world.cut_off(0, true);
    let sync = world.begin(0, Operation::Sync { node: file });
    assert!(world.ended(0, sync).is_none());
    world.interrupt(0, sync);
    assert_eq!(world.ended(0, sync), Some(Err(Errno::INTR)));
    world.cut_off(0, false);
    assert_eq!(world.run(0, write(file, 1, b"y", false)), Ok(Reply::Written(1)));
    world.sync(0, file);
}

/// A program learns from its own call, and not later from fsync, that the server refuses changes.
#[test]
fn a_server_that_refuses_changes_makes_its_mounts_read_only() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"kept");
    world.sync(0, file);
    world.restart_read_only();
    assert_eq!(world.look_up(0, Ino::ROOT, "none"), None);
    let create = Operation::Create {
        place: place(Ino::ROOT, "new"),
        node: NewNode::File,
        mode: 0o644,
        open: true,
    };
    assert_eq!(world.run(0, create), Err(Errno::ROFS));
    assert_eq!(world.run(0, write(file, 0, b"lost", false)), Err(Errno::ROFS));
    let open =
        Operation::Open { node: file, truncate: false, writable: true, kill_privileges: false };
    assert_eq!(world.run(0, open), Err(Errno::ROFS));
    assert_eq!(world.read(0, file), b"kept");
    assert_eq!(world.warnings, [""; 0]);
}

/// A process closes its files when it executes another program, which may be the server.
#[test]
fn files_are_closed_without_the_server() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"later");
    world.cut_off(0, true);
    world.pass(Duration::from_secs(30));
    let flush = world.begin(0, Operation::Flush { node: file, owner: 1 });
    assert_eq!(world.ended(0, flush), Some(Ok(Reply::Done)));
    let sync = world.begin(0, Operation::Sync { node: file });
    assert_eq!(world.ended(0, sync), None);
    world.cut_off(0, false);
    assert_eq!(world.wait(0, sync), Ok(Reply::Done));
}

fn set_xattr(node: Ino, name: &'static [u8]) -> Operation {
    let (name, value) = (name.into(), b"value"[..].into());
    Operation::SetXattr { node, name, value, create: false, replace: false }
}

/// A change that is refused alone never counts as done, however its client learns how many of its
/// batches are applied.
#[test]
fn a_refusal_that_is_overtaken_reaches_its_operation() {
    type Disturb = fn(&mut World);
    let overtaken: Disturb = World::settle;
    let lost: Disturb = World::lose_held;
    let restarted: Disturb = |world| world.restart_server(0);
    let restarted_without: Disturb = |world| {
        world.lose_held();
        world.restart_server(0);
    };
    for disturb in [overtaken, lost, restarted, restarted_without] {
        let mut world = World::new(1);
        let (first, second) =
            (world.create(0, Ino::ROOT, "first"), world.create(0, Ino::ROOT, "second"));
        world.sync(0, first);
        world.change_store(|store| store.fail_record_after(0));
        world.hold_back(
            0,
            |response| matches!(response, Response::BatchDone(done) if done.failed.is_some()),
        );
        let refused = world.begin_unsettled(0, set_xattr(first, b"user.refused"));
        let other = world.begin(0, set_xattr(second, b"user.done"));
        disturb(&mut world);
        assert_eq!(world.wait(0, refused), Err(Errno::NOSPC));
        assert_eq!(world.wait(0, other), Ok(Reply::Done));
        world.release();
        assert_eq!(world.run(0, set_xattr(first, b"user.again")), Ok(Reply::Done));
        world.sync(0, first);
        assert_eq!(world.warnings, [""; 0]);
    }
}

/// The loss of changes that applications do not wait for is reported by `fsync`, although the
/// report itself was lost with the server.
#[test]
fn a_loss_whose_report_is_lost_with_the_server_is_reported() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.change_store(|store| store.fail_record_after(0));
    world.write(0, file, 0, b"lost");
    world.hold_back(0, |response| matches!(response, Response::BatchDone(_)));
    let sync = world.begin(0, Operation::Sync { node: file });
    world.lose_held();
    world.restart_server(0);
    assert_eq!(world.wait(0, sync), Err(Errno::NOSPC));
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    assert_eq!(world.read(0, file), b"");
}
