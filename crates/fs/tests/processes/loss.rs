//! Servers and clients that are lost.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::harness::{World, can_mount};

/// STORE-1, and the mount goes on by itself when the server is back.
#[test]
fn a_server_that_is_killed_and_restarted_has_what_was_synchronised() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let address = server.ready.clone();
    let (mount, place) = world.mount(&address, "mount");
    let mut kept = File::create(place.join("kept")).unwrap();
    kept.write_all(b"before").unwrap();
    kept.sync_all().unwrap();
    server.kill();
    assert_eq!(fs::read(world.directory().join("kept")).unwrap(), b"before");
    let server = world.serve(Some(&address));
    kept.write_all(b", after").unwrap();
    kept.sync_all().unwrap();
    assert_eq!(fs::read(world.directory().join("kept")).unwrap(), b"before, after");
    drop(kept);
    assert!(mount.stop().success() && server.stop().success());
}

/// The session of a client that was killed ends with its term, and others go on.
#[test]
fn a_mount_that_is_killed_blocks_the_others_for_one_term() {
    // FS-10, FS-15.
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (killed, there) = world.mount(&server.ready, "killed");
    let (_mount, here) = world.mount(&server.ready, "mount");
    let mut file = File::create(there.join("file")).unwrap();
    file.write_all(b"synchronised").unwrap();
    file.sync_all().unwrap();
    killed.kill();
    // The other mount has an exclusive lease until then.
    assert_eq!(fs::read(here.join("file")).unwrap(), b"synchronised");
    fs::write(here.join("file"), "changed").unwrap();
    assert_eq!(fs::read(here.join("file")).unwrap(), b"changed");
}

/// FSRUN-2: a program that waits for a lost server can be killed.
#[test]
fn a_program_that_waits_for_a_lost_server_can_be_killed() {
    // FS-16.
    if !can_mount() {
        return;
    }
    let world = World::new();
    fs::write(world.directory().join("file"), "contents").unwrap();
    let server = world.serve(None);
    let (_mount, place) = world.mount(&server.ready, "mount");
    server.kill();
    let mut reader =
        Command::new("cat").arg(place.join("file")).stdout(Stdio::piped()).spawn().unwrap();
    reader.kill().unwrap();
    assert!(!reader.wait().unwrap().success());
}

#[test]
fn operations_fail_after_the_time_that_was_asked_for() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    fs::write(world.directory().join("file"), "contents").unwrap();
    let server = world.serve(None);
    let (_mount, place) = world.mount_with(&server.ready, "mount", "1");
    server.kill();
    let error = fs::read(place.join("file")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
}
