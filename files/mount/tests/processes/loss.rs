//! Servers and clients that are lost.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::harness::{World, can_mount};

/// STORE-1, and the mount continues automatically when the server is back.
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

/// FS-14: changes that no server will ever take are kept as files on the client's host, and the
/// mount ends nevertheless.
#[test]
fn changes_that_cannot_reach_the_server_are_kept_as_files() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    // Leases outlive the gap between the two servers even on a busy machine.
    let server = world.serve_with_term(None, 600);
    let address = server.ready.clone();
    let (mount, place) = world.mount(&address, "mount");
    fs::create_dir(place.join("directory")).unwrap();
    let mut file = File::create(place.join("directory/file")).unwrap();
    file.write_all(b"confirmed").unwrap();
    file.sync_all().unwrap();
    server.kill();
    file.write_all(b", and never sent").unwrap();
    fs::write(place.join("directory/new"), "a file").unwrap();
    // Another directory at the same address: its server has none of the confirmed changes.
    fs::rename(world.directory(), world.place("elsewhere").join("served")).unwrap();
    fs::create_dir(world.directory()).unwrap();
    let server = world.serve(Some(&address));
    let error = file.sync_all().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5), "{error}");
    drop(file);
    assert!(mount.stop().success() && server.stop().success());
    let losses: Vec<_> = fs::read_dir(world.lost_changes("mount")).unwrap().collect();
    let [Ok(loss)] = &losses[..] else { panic!("{losses:?}") };
    let kept = fs::read(loss.path().join("files/directory/file")).unwrap();
    assert_eq!(kept, [&[0; 9][..], b", and never sent"].concat(), "bytes at their positions");
    assert_eq!(fs::read(loss.path().join("files/directory/new")).unwrap(), b"a file");
    let changes = fs::read_to_string(loss.path().join("changes.txt")).unwrap();
    assert!(changes.contains("\ncreate file: directory/new (mode 0644"), "{changes}");
    assert!(changes.contains("\nwrite directory/file: 16 bytes at 9\n"), "{changes}");
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
