//! The exact number of calls for a workload: equal on every machine.

use std::time::Duration;

use apus_fs_core::Store;
use apus_fs_core::client::{Operation, Reply};
use apus_fs_core::wire::Ino;

use crate::world::{World, place};

/// Calls of client 0 during a workload.
fn calls(world: &mut World, work: impl FnOnce(&mut World)) -> u64 {
    let before = world.requests[0];
    work(world);
    world.requests[0] - before
}

/// FS-6.
#[test]
fn five_hundred_small_files_are_at_the_server_after_few_calls() {
    let mut world = World::new(1);
    let taken = calls(&mut world, |world| {
        let directory = world.mkdir(0, Ino::ROOT, "tree");
        for index in 0..500 {
            let file = world.create(0, directory, &format!("file-{index}"));
            world.write(0, file, 0, &[index as u8; 1_024]);
            world.close(0, file);
        }
        world.flush(0);
    });
    assert!(taken <= 20, "{taken} calls");
}

#[test]
fn a_file_that_is_made_durable_takes_one_call() {
    let mut world = World::new(1);
    let directory = world.mkdir(0, Ino::ROOT, "tree");
    world.flush(0);
    let taken = calls(&mut world, |world| {
        for index in 0..500 {
            let file = world.create(0, directory, &format!("file-{index}"));
            world.write(0, file, 0, &[index as u8; 1_024]);
            world.sync(0, file);
            world.close(0, file);
        }
    });
    assert!(taken <= 502, "{taken} calls");
}

/// A tree of 440 files in 40 directories, as another client has made it that has left.
fn tree(world: &mut World) {
    let root = world.mkdir(1, Ino::ROOT, "tree");
    for outer in 0..40 {
        let directory = world.mkdir(1, root, &format!("directory-{outer}"));
        for index in 0..11 {
            let file = world.create(1, directory, &format!("file-{index}"));
            world.write(1, file, 0, &[1; 18_000]);
            world.close(1, file);
        }
    }
    world.flush(1);
    world.leave(1);
}

fn find(world: &mut World, directory: Ino, found: &mut Vec<(Ino, String)>) {
    for name in world.list(0, directory) {
        let ino = world.look_up(0, directory, &name).unwrap();
        let Ok(Reply::Attributes(..)) = world.run(0, Operation::GetAttributes { node: ino }) else {
            panic!("no attributes")
        };
        found.push((directory, name.clone()));
        if name.starts_with("directory") || name == "tree" {
            find(world, ino, found);
        }
    }
}

#[test]
fn a_tree_is_found_in_few_calls_and_again_in_none() {
    let mut world = World::new(3);
    tree(&mut world);
    let mut found = Vec::new();
    let cold = calls(&mut world, |world| find(world, Ino::ROOT, &mut found));
    assert_eq!(found.len(), 1 + 40 + 440);
    assert!(cold <= 15, "{cold} calls");
    let warm = calls(&mut world, |world| find(world, Ino::ROOT, &mut Vec::new()));
    assert_eq!(warm, 0);
}

#[test]
fn a_tree_is_removed_in_few_calls() {
    let mut world = World::new(3);
    tree(&mut world);
    let taken = calls(&mut world, |world| {
        let mut found = Vec::new();
        find(world, Ino::ROOT, &mut found);
        for (directory, name) in found.iter().rev() {
            let is_file = name.starts_with("file");
            let place = place(*directory, name);
            let remove =
                if is_file { Operation::Unlink(place) } else { Operation::RemoveDirectory(place) };
            assert_eq!(world.run(0, remove), Ok(Reply::Done), "{name}");
        }
        world.flush(0);
    });
    assert!(taken <= 30, "{taken} calls");
    assert_eq!(world.list(2, Ino::ROOT), [""; 0]);
}

/// A file that is created and removed before it leaves: a lock file of `git status`.
#[test]
fn a_file_that_is_removed_at_once_takes_no_call() {
    let mut world = World::new(2);
    let directory = world.mkdir(0, Ino::ROOT, "repository");
    let kept = world.create(0, directory, "kept");
    world.sync(0, kept);
    let times = |world: &mut World, client, node| match world
        .run(client, Operation::GetAttributes { node })
    {
        Ok(Reply::Attributes(_, attributes, _)) => (attributes.mtime, attributes.links),
        other => panic!("{other:?}"),
    };
    let before = world.server().store_mut().attributes(directory).unwrap();
    let taken = calls(&mut world, |world| {
        for _ in 0..3 {
            let lock = world.create(0, directory, "index.lock");
            world.write(0, lock, 0, b"owner");
            world.close(0, lock);
            let unlink = Operation::Unlink(place(directory, "index.lock"));
            assert_eq!(world.run(0, unlink), Ok(Reply::Done));
            assert_eq!(world.look_up(0, directory, "index.lock"), None);
            world.sync(0, directory);
        }
    });
    assert_eq!(taken, 0);
    // Its directory is as clean as before: another client's lookup gets the lease without waiting
    // for a batch that is never sent.
    assert_eq!(world.look_up(1, Ino::ROOT, "repository"), Some(directory));
    assert_eq!(world.list(1, directory), ["kept"]);
    assert_eq!(times(&mut world, 1, directory).0, before.mtime);
    assert_eq!(times(&mut world, 0, directory).0, before.mtime);
    // And the next change of it leaves as ever.
    let other = world.create(0, directory, "other");
    world.sync(0, other);
    assert_eq!(world.list(1, directory), ["kept", "other"]);
}

/// A file that is created together with another one, or stays open, is sent: it is removed at the
/// server.
#[test]
fn a_file_that_others_need_is_not_cancelled() {
    let mut world = World::new(2);
    let directory = world.mkdir(0, Ino::ROOT, "directory");
    world.flush(0);
    let opened = world.create(0, directory, "opened");
    assert_eq!(world.run(0, Operation::Unlink(place(directory, "opened"))), Ok(Reply::Done));
    world.write(0, opened, 0, b"still used");
    assert_eq!(world.read(0, opened), b"still used");
    world.sync(0, opened);
    assert_eq!(world.server().store().orphans(), [opened]);
    world.close(0, opened);
    let first = world.create(0, directory, "first");
    let other = world.create(0, directory, "other");
    world.close(0, first);
    assert_eq!(world.run(0, Operation::Unlink(place(directory, "first"))), Ok(Reply::Done));
    world.sync(0, other);
    assert_eq!(world.look_up(1, Ino::ROOT, "directory"), Some(directory));
    assert_eq!(world.list(1, directory), ["other"]);
}

/// FS-6: a batch with one empty file waits a little longer than others, and is sent on its own.
#[test]
fn an_empty_file_leaves_after_fifty_milliseconds() {
    let mut world = World::new(1);
    let file = world.create(0, Ino::ROOT, "file");
    let (created, quiet) = (world.now(), Duration::from_millis(50));
    assert!(world.server().store_mut().attributes(file).is_err());
    world.flush(0);
    assert!(world.server().store_mut().attributes(file).is_ok());
    assert!((quiet..quiet * 2).contains(&(world.now() - created)), "{:?}", world.now() - created);
}
