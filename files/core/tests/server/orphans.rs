//! A file that is removed while others have it open is kept until they have closed it.

use apus_fs_core::wire::{
    Errno, Failure, Handle, LeaseKind, NodeRange, Record, Response, SessionRequest, Time,
};

use crate::world::{TERM, World, name};

use apus_fs_core::Store;

use LeaseKind::{Exclusive, Shared};

/// A world in which client 0 has removed a file that client 1 has received.
fn world() -> (World, Handle) {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let file = world.create_file(0, root, "file");
    world.release_all(0, &[file]);
    world.lease(1, &[(file, Shared)]);
    world.release_all(1, &[file]);
    let unlink = Record::Unlink { parent: root, name: name("file"), node: file };
    world.apply(0, &[unlink, Record::Close { node: file }], b"");
    (world, file)
}

fn is_kept(world: &World, file: Handle) -> bool {
    world.server.store().orphans().contains(&file.ino)
}

fn read(world: &mut World, id: usize, file: Handle) -> Response {
    let range = NodeRange { file, offset: 0, length: 10 };
    world.ask(id, SessionRequest::Read { ranges: vec![range] })
}

/// FSSERVE-10.
#[test]
fn an_orphan_is_kept_while_another_client_has_it_open() {
    let (mut world, file) = world();
    let (callback, nodes) = world.recall(1);
    assert_eq!((nodes[0].node, nodes[0].keep, nodes[0].is_removed), (file, LeaseKind::None, true));
    assert!(is_kept(&world, file));
    world.answer(callback, &[file]);
    assert!(matches!(read(&mut world, 1, file), Response::ReadDone(_)));
    // The client that has it open may change it, too.
    world.lease(1, &[(file, Exclusive)]);
    world.apply(1, &[Record::Close { node: file }], b"");
    assert!(!is_kept(&world, file));
    assert_eq!(read(&mut world, 1, file), Response::Failed(Failure::Errno(Errno::STALE)));
}

/// FSSERVE-10.
#[test]
fn an_orphan_that_no_client_has_open_is_removed() {
    let (mut world, file) = world();
    let (callback, _) = world.recall(1);
    world.answer(callback, &[]);
    assert!(!is_kept(&world, file));
    // If no other client has received the file, it is removed at once.
    let root = world.root;
    let private = world.create_file(0, root, "private");
    let unlink = Record::Unlink { parent: root, name: name("private"), node: private };
    world.apply(0, &[unlink, Record::Close { node: private }], b"");
    assert!(!is_kept(&world, private));
    assert_eq!(world.callback(1), None);
}

/// FSSERVE-10: the remover itself has it open until it sends Close.
#[test]
fn the_remover_keeps_its_own_orphan_until_close_or_its_end() {
    let mut world = World::with_clients(1);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    for close in [true, false] {
        let file = world.create_file(0, root, "file");
        world.apply(0, &[Record::Unlink { parent: root, name: name("file"), node: file }], b"");
        assert!(is_kept(&world, file));
        if close {
            world.apply(0, &[Record::Close { node: file }], b"");
        } else {
            world.ask(0, SessionRequest::Goodbye);
        }
        assert!(!is_kept(&world, file));
    }
}

/// FSSERVE-10: a Close that overtakes the answer to the recall counts.
#[test]
fn a_close_may_overtake_the_answer() {
    let (mut world, file) = world();
    let (callback, _) = world.recall(1);
    world.apply(1, &[Record::Close { node: file }], b"");
    assert!(!is_kept(&world, file));
    world.answer(callback, &[file]);
    assert!(!is_kept(&world, file));
}

/// FSSERVE-10: a client that cannot be called keeps its session, and its possibly open nodes.
#[test]
fn a_client_that_cannot_be_called_keeps_the_orphan() {
    let (mut world, file) = world();
    for _ in 0..20 {
        while let Some((callback, _)) = world.callback(1) {
            world.fail_callback(callback);
        }
        world.pass(TERM / 4);
        for id in [0, 1] {
            assert_eq!(world.ask(id, SessionRequest::Renew), Response::Done);
        }
    }
    assert!(is_kept(&world, file));
    world.lease(1, &[(file, Exclusive)]);
    world.pass(TERM * 10);
    assert!(!is_kept(&world, file));
}

#[test]
fn a_file_without_a_name_lives_until_it_is_closed_or_named() {
    let mut world = World::with_clients(1);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    for is_named in [false, true] {
        let ino = world.new_ino(0);
        let create = Record::Create {
            parent: None,
            ino,
            node: apus_fs_core::wire::NewNode::File,
            mode: 0o600,
            uid: 0,
            gid: 0,
            time: Time::default(),
        };
        world.apply(0, &[create], b"");
        let file = Handle::created(ino);
        assert!(is_kept(&world, file));
        if is_named {
            let link = Record::Link { node: file, parent: root, name: name("named") };
            world.apply(0, &[link], b"");
            assert!(!is_kept(&world, file));
        }
        world.apply(0, &[Record::Close { node: file }], b"");
        let found = read(&mut world, 0, file);
        assert_eq!(matches!(found, Response::ReadDone(_)), is_named, "{found:?}");
    }
}
