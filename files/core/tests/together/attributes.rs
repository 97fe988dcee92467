//! Attributes as programs see them, compared with the actual changes.

use apus_fs_core::client::{AttributeChange, NewTime, Operation, Reply};
use apus_fs_core::wire::{AllocateMode, Attributes, Errno, Ino, Time};

use crate::world::{World, place, write};

#[track_caller]
fn attributes(world: &mut World, client: usize, node: Ino) -> Attributes {
    match world.run(client, Operation::GetAttributes { node }).unwrap() {
        Reply::Attributes(_, attributes, _) => attributes,
        other => panic!("{other:?}"),
    }
}

fn times(attributes: &Attributes) -> (Time, Time) {
    (attributes.mtime, attributes.ctime)
}

#[track_caller]
fn change(world: &mut World, client: usize, node: Ino, change: AttributeChange) {
    let done = world.run(client, Operation::SetAttributes { node, change });
    assert!(done.is_ok(), "{done:?}");
}

fn mode(mode: u16) -> AttributeChange {
    AttributeChange { mode: Some(mode), ..AttributeChange::default() }
}

/// Programs such as `tar` and `git` interpret another time as another change.
#[test]
fn times_stay_when_the_server_has_applied_a_change() {
    let mut world = World::new(2);
    let directory = world.mkdir(0, Ino::ROOT, "directory");
    let file = world.create(0, directory, "file");
    world.write(0, file, 0, b"contents");
    let before = [file, directory].map(|node| times(&attributes(&mut world, 0, node)));
    world.flush(0);
    world.advance();
    let after = [file, directory].map(|node| times(&attributes(&mut world, 0, node)));
    assert_eq!(before, after);
    // FS-1: all mounts see the same.
    assert_eq!(world.look_up(1, Ino::ROOT, "directory"), Some(directory));
    assert_eq!(world.look_up(1, directory, "file"), Some(file));
    for node in [file, directory] {
        let there = attributes(&mut world, 1, node);
        assert_eq!(times(&attributes(&mut world, 0, node)), times(&there));
    }
    let at = Time { seconds: -7, nanoseconds: 5 };
    let set = AttributeChange { mtime: Some(NewTime::At(at)), ..AttributeChange::default() };
    change(&mut world, 1, file, set);
    world.flush(1);
    assert_eq!(attributes(&mut world, 1, file).mtime, at);
    assert_eq!(attributes(&mut world, 0, file).mtime, at);
}

#[test]
fn a_file_with_a_hole_has_no_blocks_there() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 1 << 40, b"end");
    assert_eq!(attributes(&mut world, 0, file).blocks, 8);
    world.write(0, file, 0, &[1; 4_097]);
    assert_eq!(attributes(&mut world, 0, file).blocks, 24);
}

#[test]
fn a_file_without_a_name_has_the_group_of_its_directory() {
    let mut world = World::new(1);
    let directory = world.mkdir(0, Ino::ROOT, "directory");
    change(&mut world, 0, directory, AttributeChange { gid: Some(7), ..mode(0o2755) });
    let create = Operation::CreateTemporary { directory, mode: 0o600 };
    let Ok(Reply::Created(entry)) = world.run(0, create) else { panic!("not created") };
    assert_eq!(entry.attributes.gid, 7);
}

/// A program with an open removed directory can do all that needs no name in it, and no other
/// change is lost by that.
#[test]
fn a_removed_directory_that_is_open_is_empty() {
    let mut world = World::new(2);
    for remover in [0, 1] {
        let directory = world.mkdir(0, Ino::ROOT, "directory");
        assert_eq!(world.look_up(1, Ino::ROOT, "directory"), Some(directory));
        let remove = Operation::RemoveDirectory(place(Ino::ROOT, "directory"));
        assert_eq!(world.run(remover, remove), Ok(Reply::Done));
        world.flush(remover);
        assert_eq!(attributes(&mut world, 0, directory).links, 0, "removed by {remover}");
        change(&mut world, 0, directory, mode(0o700));
        assert_eq!(attributes(&mut world, 0, directory).mode, 0o700);
        assert_eq!(world.list(0, directory), [""; 0]);
        let inside = Operation::Create {
            place: place(directory, "inside"),
            node: apus_fs_core::wire::NewNode::File,
            mode: 0o644,
            open: true,
        };
        assert_eq!(world.run(0, inside), Err(Errno::NOENT));
        world.flush(0);
    }
    assert_eq!(world.warnings, [""; 0]);
}

/// A descriptor of `O_PATH` keeps no file open: changes through it are refused, and no other change
/// is lost by that.
#[test]
fn a_file_that_is_gone_is_not_changed() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.close(0, file);
    assert_eq!(world.run(0, Operation::Unlink(place(Ino::ROOT, "file"))), Ok(Reply::Done));
    let link = Operation::Link { node: file, place: place(Ino::ROOT, "again") };
    assert_eq!(world.run(0, link), Err(Errno::NOENT));
    let set = Operation::SetAttributes { node: file, change: mode(0o600) };
    assert_eq!(world.run(0, set), Err(Errno::STALE));
    assert_eq!(world.run(0, write(file, 0, b"x", false)), Err(Errno::STALE));
    world.flush(0);
    assert_eq!(world.warnings, [""; 0]);
}

/// FSCLIENT-1: with an empty log, a read behind the hole waited for a batch that did not exist.
#[test]
fn a_read_after_a_hole_was_punched_ends() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, &[1; 100]);
    for write_first in [false, true] {
        world.flush(0);
        if write_first {
            world.write(0, file, 0, &[2; 10]);
        }
        let (mode, offset, length) = (AllocateMode::PunchHole, 10, 80);
        let punch = Operation::Allocate { node: file, mode, offset, length };
        assert_eq!(world.run(0, punch), Ok(Reply::Done));
        let first = if write_first { 2 } else { 1 };
        let expected = [&[first; 10][..], &[0; 80], &[1; 10]].concat();
        assert_eq!(world.read(0, file), expected);
    }
}
