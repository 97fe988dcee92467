//! Each operation sees all operations that ended before it started, at any client.

use apus_fs_core::client::{AttributeChange, Operation, Reply};
use apus_fs_core::wire::{Errno, Ino};

use crate::world::{World, place, write};

/// FS-1, FS-5, FSCLIENT-2, FSCLIENT-4.
#[test]
fn a_file_that_one_client_writes_is_read_by_the_other() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, b"first");
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(file));
    assert_eq!(world.read(1, file), b"first");
    world.write(0, file, 2, b"REST!");
    assert_eq!(world.read(1, file), b"fiREST!");
    world.write(1, file, 0, b"x");
    assert_eq!(world.read(0, file), b"xiREST!");
    assert_eq!(world.warnings, [""; 0]);
}

/// FSCLIENT-2: absent names are cached, too.
#[test]
fn a_name_that_did_not_exist_is_seen_when_it_does() {
    let mut world = World::new(2);
    assert_eq!(world.look_up(1, Ino::ROOT, "later"), None);
    let directory = world.mkdir(0, Ino::ROOT, "later");
    assert_eq!(world.look_up(1, Ino::ROOT, "later"), Some(directory));
    assert_eq!(world.look_up(1, directory, "inside"), None);
    world.create(0, directory, "inside");
    assert!(world.look_up(1, directory, "inside").is_some());
    assert_eq!(world.list(1, directory), ["inside"]);
    let unlink = Operation::Unlink(place(directory, "inside"));
    assert_eq!(world.run(1, unlink), Ok(Reply::Done));
    assert_eq!(world.list(0, directory), [""; 0]);
    assert_eq!(world.look_up(0, directory, "inside"), None);
}

/// FS-2.
#[test]
fn appends_of_several_clients_are_all_there() {
    let mut world = World::new(3);
    let file = world.create(0, Ino::ROOT, "log");
    for client in 1..3 {
        assert_eq!(world.look_up(client, Ino::ROOT, "log"), Some(file));
    }
    for round in 0..20 {
        for client in 0..3 {
            world.append(client, file, format!("{client} {round}\n").as_bytes());
        }
    }
    let text = String::from_utf8(world.read(0, file)).unwrap();
    assert_eq!(text.lines().count(), 60);
    for (index, line) in text.lines().enumerate() {
        assert_eq!(line, format!("{} {}", index % 3, index / 3));
    }
}

#[test]
fn operations_that_want_the_same_at_once_all_end() {
    let mut world = World::new(3);
    let file = world.create(0, Ino::ROOT, "shared");
    for client in 0..3 {
        world.look_up(client, Ino::ROOT, "shared");
    }
    let mut waiting = Vec::new();
    for round in 0..10 {
        for client in 0..3 {
            waiting.push((client, world.begin(client, write(file, 0, b"line\n", true))));
            let name = format!("{client}-{round}");
            let link = Operation::Link { node: file, place: place(Ino::ROOT, &name) };
            waiting.push((client, world.begin(client, link)));
        }
    }
    for (client, token) in waiting {
        for _ in 0..1_000 {
            match world.ended(client, token) {
                Some(result) => {
                    assert!(result.is_ok(), "{result:?}");
                    break;
                }
                None => world.advance(),
            }
        }
    }
    assert_eq!(world.read(2, file).len(), 30 * 5);
    assert_eq!(world.list(1, Ino::ROOT).len(), 31);
}

/// FS-1, FS-9: bytes written before the rename are present after it.
#[test]
fn renames_between_directories_are_seen() {
    let mut world = World::new(2);
    let (a, b) = (world.mkdir(0, Ino::ROOT, "a"), world.mkdir(0, Ino::ROOT, "b"));
    let file = world.create(0, a, "file");
    world.write(0, file, 0, b"contents");
    for (name, directory) in [("a", a), ("b", b)] {
        assert_eq!(world.look_up(1, Ino::ROOT, name), Some(directory));
    }
    assert_eq!(world.list(1, a), ["file"]);
    let rename = |from: (Ino, &str), to: (Ino, &str)| Operation::Rename {
        from: place(from.0, from.1),
        to: place(to.0, to.1),
        exchange: false,
        no_replace: false,
    };
    assert_eq!(world.run(1, rename((a, "file"), (b, "moved"))), Ok(Reply::Done));
    assert_eq!(world.list(0, a), [""; 0]);
    assert_eq!(world.list(0, b), ["moved"]);
    assert_eq!(world.run(0, rename((a, "file"), (b, "x"))), Err(Errno::NOENT));
    assert_eq!(world.run(0, rename((Ino::ROOT, "b"), (Ino::ROOT, "a"))), Ok(Reply::Done));
    assert_eq!(world.list(1, Ino::ROOT), ["a"]);
    let moved = world.look_up(1, Ino::ROOT, "a").unwrap();
    assert_eq!(moved, b);
    assert_eq!(world.read(1, file), b"contents");
    let remove = Operation::RemoveDirectory(place(Ino::ROOT, "a"));
    assert_eq!(world.run(1, remove), Err(Errno::NOTEMPTY));
}

/// FSCLIENT-3: the new file, which the server does not have yet, is leased together with the file
/// that it replaces.
#[test]
fn a_file_is_replaced_by_one_that_was_just_created() {
    let mut world = World::new(2);
    let old = world.create(1, Ino::ROOT, "file");
    world.sync(1, old);
    assert_eq!(world.look_up(0, Ino::ROOT, "file"), Some(old));
    let new = world.create(0, Ino::ROOT, "new");
    world.write(0, new, 0, b"contents");
    let (from, to) = (place(Ino::ROOT, "new"), place(Ino::ROOT, "file"));
    let rename = Operation::Rename { from, to, exchange: false, no_replace: false };
    assert_eq!(world.run(0, rename), Ok(Reply::Done));
    assert_eq!(world.look_up(1, Ino::ROOT, "file"), Some(new));
    assert_eq!(world.read(1, new), b"contents");
}

#[test]
fn sizes_and_times_are_those_of_the_last_change() {
    let mut world = World::new(2);
    let file = world.create(0, Ino::ROOT, "file");
    world.write(0, file, 0, &[7; 10_000]);
    let size = |size| AttributeChange { size: Some(size), ..AttributeChange::default() };
    let change = Operation::SetAttributes { node: file, change: size(100) };
    assert!(world.run(0, change).is_ok());
    let change = Operation::SetAttributes { node: file, change: size(300) };
    assert!(world.run(0, change).is_ok());
    let mut expected = vec![7; 100];
    expected.resize(300, 0);
    assert_eq!(world.read(0, file), expected);
    world.look_up(1, Ino::ROOT, "file");
    assert_eq!(world.read(1, file), expected);
    let Ok(Reply::Attributes(_, attributes, _)) =
        world.run(1, Operation::GetAttributes { node: file })
    else {
        panic!("no attributes")
    };
    assert_eq!((attributes.size, attributes.mode), (300, 0o644));
}

/// Replaces a file like git: a new file next to it, renamed over it; by one client after the other.
#[test]
fn a_file_is_replaced_by_one_client_after_the_other() {
    let mut world = World::new(2);
    let directory = world.mkdir(0, Ino::ROOT, "refs");
    let first = world.create(0, directory, "master");
    world.write(0, first, 0, b"0");
    world.close(0, first);
    assert_eq!(world.look_up(1, Ino::ROOT, "refs"), Some(directory));
    for round in 1..6_u8 {
        let client = usize::from(round % 2);
        let old = world.look_up(client, directory, "master").unwrap();
        assert_eq!(world.read(client, old), [b'0' + round - 1]);
        assert_eq!(world.look_up(client, directory, "master.lock"), None);
        let new = world.create(client, directory, "master.lock");
        world.write(client, new, 0, &[b'0' + round]);
        world.close(client, new);
        let rename = Operation::Rename {
            from: place(directory, "master.lock"),
            to: place(directory, "master"),
            exchange: false,
            no_replace: false,
        };
        assert_eq!(world.run(client, rename), Ok(Reply::Done), "round {round}");
        assert_eq!(world.list(client, directory), ["master"]);
        assert_eq!(world.look_up(client, directory, "master"), Some(new));
    }
    assert_eq!(world.warnings, [""; 0]);
}
