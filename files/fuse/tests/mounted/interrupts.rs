//! Requests that end only when interrupted, and callers that are killed.

use crate::world::World;
use apus_fuse::{Errno, ReplyError};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

/// A process that reads a file which is never answered.
fn reader(world: &World) -> Child {
    File::create(world.path("stuck")).unwrap();
    // The kernel reads no byte of an empty file.
    File::options().write(true).open(world.path("stuck")).unwrap().set_len(100).unwrap();
    let command = Command::new("cat").arg(world.path("stuck")).stdout(Stdio::null()).spawn();
    world.until(|session, _| !session.unanswered().is_empty());
    command.unwrap()
}

#[test]
fn sigkill_ends_the_reader_of_a_read_that_is_never_answered() {
    let Some(world) = World::new() else { return };
    let mut reader = reader(&world);
    reader.kill().unwrap();
    let status = reader.wait().unwrap();
    assert_eq!(status.signal(), Some(9));
    world.until(|session, _| session.unanswered().is_empty());
    assert!(world.server.lock().unwrap().interrupts >= 1);
    fs::write(world.path("other"), "usable").unwrap();
}

#[test]
fn a_request_is_answered_once() {
    let Some(world) = World::new() else { return };
    let mut reader = reader(&world);
    let stuck = world.session.unanswered();
    world.session.fail_all(Errno::IO);
    assert_eq!(
        world.session.fail(stuck[0], Errno::INTR),
        Err(ReplyError::Answered),
        "FUSE_SESSION-1"
    );
    // cat may try again before it gives up.
    while reader.try_wait().unwrap().is_none() {
        world.session.fail_all(Errno::IO);
    }
    assert_eq!(reader.wait().unwrap().code(), Some(1));
}

#[test]
fn a_process_that_waits_for_a_lock_can_be_killed() {
    let Some(world) = World::new() else { return };
    let path = world.path("file");
    let held = File::create(&path).unwrap();
    held.lock().unwrap();
    let Ok(mut waiter) = Command::new("flock").arg(&path).arg("true").spawn() else {
        eprintln!("SKIPPED: no flock(1)");
        return;
    };
    world.until(|session, _| !session.unanswered().is_empty());
    waiter.kill().unwrap();
    assert_eq!(waiter.wait().unwrap().signal(), Some(9));
    world.until(|session, _| session.unanswered().is_empty());
    held.unlock().unwrap();
    File::open(&path).unwrap().lock().unwrap();
}

#[test]
fn requests_beyond_the_bound_fail_and_those_below_can_be_interrupted() {
    let mut settings = apus_fuse::SessionSettings::default();
    settings.max_unanswered = 1;
    let options = apus_fuse::MountOptions::default();
    let Some(world) = World::with(&options, crate::server::MemoryServer::default(), settings)
    else {
        return;
    };
    let mut reader = reader(&world);
    let error = fs::write(world.path("another"), "").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(12), "ENOMEM, FUSE_SESSION-4");
    reader.kill().unwrap();
    reader.wait().unwrap();
    world.until(|session, _| session.unanswered().is_empty());
    fs::write(world.path("another"), "").unwrap();
}
