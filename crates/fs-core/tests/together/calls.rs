//! How many calls a work takes, exactly: the same on every machine.

use apus_fs_core::client::{Operation, Reply};
use apus_fs_wire::Ino;

use crate::world::{World, place};

/// Calls of client 0 that some work takes.
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
