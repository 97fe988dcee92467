//! Clients that return: the leases that they claim, and those that they keep. Each scenario was
//! first found by a seed of `apus-fs-sim`.

use std::time::Duration;

use apus_fs_core::Store;
use apus_fs_core::client::{Invalidation, LostChange, Operation, Reply};
use apus_fs_core::wire::{Errno, Ino, Record, Response};

use crate::world::{World, place};

const LONGER_THAN_A_TERM: Duration = Duration::from_secs(12);

fn is_claim_done(response: &Response) -> bool {
    matches!(response, Response::Reclaimed(leases) if !leases.is_empty())
}

fn open(node: Ino) -> Operation {
    Operation::Open { node, truncate: false, writable: true, kill_privileges: false }
}

/// FS-13, FSCLIENT-5: the recall overtakes the response that grants the lease again, and the
/// changes leave with it.
#[test]
fn a_recall_during_a_claim_loses_nothing() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    world.write(0, file, 0, b"unsent");
    world.hold_back(
        0,
        |response| matches!(response, Response::Reclaimed(leases) if !leases.is_empty()),
    );
    world.restart_server(0);
    let read = world.begin(1, Operation::Read { node: file, offset: 0, size: 100 });
    world.pass(Duration::from_secs(4));
    world.release();
    assert_eq!(world.wait(1, read), Ok(Reply::Data(vec!["unsent".into()])));
    world.sync(0, file);
    assert_eq!(world.warnings, [""; 0]);
}

/// FS-13: leases that were not claimed when the server crashed again are claimed from the third
/// one.
#[test]
fn a_crash_during_a_claim_loses_nothing() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.write(0, file, 0, b"unsent");
    world.hold_back(0, is_claim_done);
    world.restart_server(0);
    world.pass(Duration::from_secs(4));
    world.restart_server(0);
    world.lose_held();
    let synced = world.run(0, Operation::Sync { node: file });
    assert_eq!(synced, Ok(Reply::Done), "{:?}", world.warnings);
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(file));
    assert_eq!(world.read(1, file), b"unsent");
    assert_eq!(world.warnings, [""; 0]);
}

/// FS-13, FSSERVE-5: the claim is repeated while a recall waits for it.
#[test]
fn a_recall_during_a_repeated_claim_loses_nothing() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    world.write(0, file, 0, b"unsent");
    world.hold_back(0, is_claim_done);
    world.restart_server(0);
    let read = world.begin(1, Operation::Read { node: file, offset: 0, size: 100 });
    world.pass(Duration::from_secs(4));
    world.lose_held();
    assert_eq!(world.wait(1, read), Ok(Reply::Data(vec!["unsent".into()])));
    world.sync(0, file);
    assert_eq!(world.warnings, [""; 0]);
}

/// FS-14: the response to the last batch was lost with the server, so the client has the contents
/// and not the version.
#[test]
fn a_client_whose_response_was_lost_goes_on_after_a_long_crash() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.write(0, file, 0, b"applied");
    let sync = world.begin_unsettled(0, Operation::Sync { node: file });
    world.deliver_requests();
    world.cut_off(0, true);
    world.write(0, file, 7, b" and not yet");
    world.pass(LONGER_THAN_A_TERM);
    world.restart_server(0);
    world.cut_off(0, false);
    assert_eq!(world.wait(0, sync), Ok(Reply::Done));
    world.sync(0, file);
    assert_eq!(world.read(0, file), b"applied and not yet");
    assert_eq!(world.warnings, [""; 0]);
}

/// FSSERVE-11: a lease that another client has received is not claimed, although the server that
/// granted it is gone.
#[test]
fn a_client_that_was_away_claims_only_what_its_changes_need() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    world.read(1, file);
    world.cut_off(1, true);
    world.write(0, file, 0, b"durable");
    world.pass(LONGER_THAN_A_TERM);
    world.sync(0, file);
    world.write(0, file, 0, b"DURABLE");
    world.cut_off(0, true);
    world.restart_server(0);
    world.cut_off(1, false);
    world.pass(Duration::from_secs(4));
    world.cut_off(0, false);
    world.sync(0, file);
    assert_eq!(world.read(1, file), b"DURABLE");
    assert_eq!(world.warnings, [""; 0]);
}

/// FSSERVE-15: a name that another client has seen absent does not reappear, although the server
/// was restarted.
#[test]
fn changes_of_a_fenced_client_are_void_after_a_restart() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    world.write(0, file, 0, b"unsent");
    world.cut_off(0, true);
    world.pass(LONGER_THAN_A_TERM);
    assert_eq!(world.read(1, file), b"");
    world.restart_server(0);
    world.cut_off(0, false);
    world.pass(LONGER_THAN_A_TERM);
    assert_eq!(world.read(1, file), b"");
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
    assert_eq!(
        world.run(0, Operation::Sync { node: file }),
        Err(Errno::IO),
        "the loss is reported once"
    );
    // Its changes from now on count.
    world.write(0, file, 0, b"new");
    world.restart_server(0);
    world.sync(0, file);
    assert_eq!(world.read(1, file), b"new");
}

/// FSSERVE-15: as above without a restart, and the other client does not use the file any more.
#[test]
fn changes_of_a_fenced_client_are_void_although_the_reader_has_gone() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    world.write(0, file, 0, b"unsent");
    world.cut_off(0, true);
    world.pass(LONGER_THAN_A_TERM);
    assert_eq!(world.read(1, file), b"");
    world.cut_off(1, true);
    world.pass(LONGER_THAN_A_TERM);
    world.cut_off(0, false);
    world.pass(LONGER_THAN_A_TERM);
    world.cut_off(1, false);
    assert_eq!(world.read(1, file), b"");
    assert_eq!(world.warnings.len(), 1, "{:?}", world.warnings);
}

/// FSSERVE-15: a client that no other has missed brings its changes, however late.
#[test]
fn changes_that_no_other_client_could_miss_are_kept() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.write(0, file, 0, b"unsent");
    world.cut_off(0, true);
    world.pass(20 * LONGER_THAN_A_TERM);
    world.cut_off(0, false);
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    assert_eq!(world.read(1, file), b"unsent");
    assert_eq!(world.warnings, [""; 0]);
}

/// FSSERVE-15: a client that returns after the grace period of a restarted server sends its changes
/// of `mine`, if the other client has learned of `learned` in this life of the server. Returns
/// their outcome.
fn return_late(learned: &str) -> (Result<Reply, Errno>, Vec<u8>, usize) {
    let mut world = World::new(2);
    let mine = world.create(0, Ino::ROOT, "mine");
    world.sync(0, mine);
    let other = world.create(0, Ino::ROOT, "other");
    world.sync(0, other);
    world.write(0, mine, 0, b"unsent");
    world.cut_off(0, true);
    world.restart_server(0);
    world.pass(LONGER_THAN_A_TERM);
    let found = world.look_up(1, Ino::ROOT, learned).unwrap();
    assert_eq!(world.read(1, found), b"");
    world.cut_off(0, false);
    let synced = world.run(0, Operation::Sync { node: mine });
    world.look_up(1, Ino::ROOT, "mine");
    (synced, world.read(1, mine), world.warnings.len())
}

#[test]
fn a_latecomer_loses_only_what_another_client_has_missed() {
    assert_eq!(return_late("other"), (Ok(Reply::Done), b"unsent".to_vec(), 0));
    assert_eq!(return_late("mine"), (Err(Errno::IO), Vec::new(), 1));
}

/// FS-14: a closed file without a name cannot be lost.
#[test]
fn a_closed_orphan_that_is_gone_is_no_conflict() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    assert_eq!(world.run(0, Operation::Unlink(place(Ino::ROOT, "file"))), Ok(Reply::Done));
    world.flush(0);
    world.cut_off(0, true);
    world.close(0, file);
    world.restart_server(0);
    world.pass(LONGER_THAN_A_TERM);
    assert_eq!(world.server().store().orphans(), []);
    world.cut_off(0, false);
    let other = world.create(0, Ino::ROOT, "other");
    world.sync(0, other);
    assert_eq!(world.warnings, [""; 0]);
}

/// FS-4, FSSERVE-10: the server keeps a file without a name for the clients that had it open when
/// it lost the name. Another thread with an earlier lookup gets no opening that may lose its file.
#[test]
fn a_file_without_a_name_is_not_opened_anew() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(file));
    assert_eq!(world.run(1, Operation::Unlink(place(Ino::ROOT, "file"))), Ok(Reply::Done));
    world.flush(1);
    assert_eq!(world.run(1, open(file)), Err(Errno::STALE));
    assert!(world.run(0, open(file)).is_ok(), "it is open there");
    world.write(0, file, 0, b"written since");
    world.close(0, file);
    world.close(0, file);
    world.flush(0);
    assert_eq!(world.server().store().orphans(), []);
}

/// FSSERVE-4, FSCLIENT-2: the lease on an orphan ends when it is closed.
#[test]
fn an_orphan_that_was_closed_is_seen_as_it_is() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(file));
    assert_eq!(world.run(1, Operation::Unlink(place(Ino::ROOT, "file"))), Ok(Reply::Done));
    world.flush(1);
    assert_eq!(world.run(1, open(file)), Err(Errno::STALE));
    for text in [b"written since", b"WRITTEN since"] {
        world.write(0, file, 0, text);
        assert_eq!(world.read(1, file), text);
    }
}

/// FSCLIENT-4: a kernel caches a page behind the end of a file, too.
#[test]
fn a_kernel_that_has_read_an_empty_file_drops_its_page() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "file");
    assert_eq!(world.read(1, file), b"");
    world.write(0, file, 0, b"text");
    let dropped = Invalidation::Node { node: file, data: true };
    assert!(world.invalidated.contains(&(1, dropped)), "{:?}", world.invalidated);
}

/// FS-14: lost changes are handed out as they were made, with the paths that programs use.
#[test]
fn changes_that_are_lost_are_handed_out() {
    let mut world = World::new(2);
    let directory = world.mkdir(0, Ino::ROOT, "directory");
    let file = world.create(0, directory, "file");
    world.write(0, file, 0, b"durable");
    world.sync(0, file);
    world.look_up(1, Ino::ROOT, "directory");
    world.look_up(1, directory, "file");
    world.write(0, file, 7, b", not sent");
    world.write(0, file, 0, b"DUR");
    world.cut_off(0, true);
    world.pass(LONGER_THAN_A_TERM);
    world.write(1, file, 0, b"changed");
    world.sync(1, file);
    world.cut_off(0, false);
    world.pass(LONGER_THAN_A_TERM);
    let [lost] = &world.lost_changes[..] else { panic!("{:?}", world.lost_changes) };
    let bytes = |change: &LostChange| (change.record.clone(), change.data.concat());
    let writes: Vec<(u64, Vec<u8>)> = lost
        .changes
        .iter()
        .map(|change| match bytes(change) {
            (Record::Write { file: written, offset, .. }, bytes) if written.ino == file => {
                (offset, bytes)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(writes, [(7, b", not sent".to_vec()), (0, b"DUR".to_vec())]);
    let path: Vec<String> = lost.paths[&file].iter().map(ToString::to_string).collect();
    assert_eq!(path, ["directory", "file"]);
    assert_eq!(world.run(0, Operation::Sync { node: file }), Err(Errno::IO));
}

/// FS-8: changes that the server has applied before the failed record are not lost.
#[test]
fn changes_before_the_one_that_failed_are_not_handed_out() {
    let mut world = World::new(1);
    let first = world.create(0, Ino::ROOT, "first");
    let second = world.create(0, Ino::ROOT, "second");
    world.change_store(|store| store.fail_record_after(1));
    assert_eq!(world.run(0, Operation::Sync { node: first }), Err(Errno::NOSPC));
    let lost: Vec<&Record> =
        world.lost_changes.iter().flat_map(|lost| &lost.changes).map(|one| &one.record).collect();
    assert!(matches!(lost[..], [Record::Create { ino, .. }] if *ino == second), "{lost:?}");
    assert!(world.warnings[0].starts_with("1 changes were lost"), "{:?}", world.warnings);
}
