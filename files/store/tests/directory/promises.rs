//! The directory store: hidden files, kept nodes, and refused records.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::support::*;
use apus_fs_core::Store;
use apus_fs_core::store::ClientBatch;
use apus_fs_core::wire::{
    AllocateMode, Errno, FailedBatch, Ino, Name, NewNode, NodeKind, Record, SeekTarget,
    SetAttributes,
};
use apus_fs_store::{DirectoryOptions, DirectoryStore, FailPoint, OpenError};
use bytes::Bytes;

const A: Ino = Ino(FIRST);
const B: Ino = Ino(FIRST + 1);
const C: Ino = Ino(FIRST + 2);

/// Commits a record that fails, and returns why.
fn refusal(store: &mut DirectoryStore, record: Record) -> Option<Errno> {
    commit(store, client(1), vec![record], Bytes::new()).failed.map(|(_, errno)| errno)
}

/// STORE-5: a link in the tree is a node, and its target is neither read nor changed.
#[test]
fn links_are_never_followed() {
    let (outside, directory) = (temporary(), temporary());
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), directory.path().join("link")).unwrap();
    symlink(outside.path().join("secret"), directory.path().join("file")).unwrap();
    let mut store = open(directory.path());
    let link = look_up(&mut store, Ino::ROOT, "link").unwrap();
    let file = look_up(&mut store, Ino::ROOT, "file").unwrap();
    assert_eq!(store.attributes(link).unwrap().kind, NodeKind::Symlink);
    assert_eq!(&store.target(link).unwrap()[..], outside.path().as_os_str().as_bytes());
    assert_eq!(store.look_up(link, &name("secret")), Err(Errno::NOTDIR));
    assert_eq!(store.list(link, None, 10), Err(Errno::NOTDIR));
    assert_eq!(store.read(file, 0, 10), Err(Errno::INVAL));
    assert_eq!(refusal(&mut store, create_file(link, "new", A)), Some(Errno::NOTDIR));
    assert_eq!(refusal(&mut store, write(file, 0, 0, 0)), Some(Errno::INVAL));
    let mode = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    let record = Record::SetAttributes { node: handle(file), set: mode };
    assert_eq!(refusal(&mut store, record), Some(Errno::OPNOTSUPP));
    let owner = SetAttributes { uid: Some(7), mtime: Some(at(1)), ..SetAttributes::default() };
    commit_all(&mut store, vec![Record::SetAttributes { node: handle(file), set: owner }], b"");
    let secret = fs::metadata(outside.path().join("secret")).unwrap();
    assert_ne!((secret.mtime(), secret.uid()), (1, 7));
    assert_eq!(secret.mode() & 0o777, 0o644);

    // Another process replaces a directory by a link, after the server has found its contents.
    fs::create_dir(directory.path().join("swap")).unwrap();
    fs::write(directory.path().join("swap/secret"), "mine").unwrap();
    let swap = look_up(&mut store, Ino::ROOT, "swap").unwrap();
    let inner = look_up(&mut store, swap, "secret").unwrap();
    drop(store);
    fs::remove_dir_all(directory.path().join("swap")).unwrap();
    symlink(outside.path(), directory.path().join("swap")).unwrap();
    let mut store = open(directory.path());
    assert_eq!(store.read(inner, 0, 10), Err(Errno::STALE));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

/// STORE-5: the store's own directory does not exist for clients, and its reserved node numbers
/// name no node.
#[test]
fn the_state_is_hidden() {
    let directory = temporary();
    let mut store = open(directory.path());
    let state = directory.path().join(".apus-fs");
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(look_up(&mut store, Ino::ROOT, ".apus-fs"), None);
    assert_eq!(store.list(Ino::ROOT, None, 10).unwrap().entries, []);
    let hidden = ".apus-fs";
    assert_eq!(refusal(&mut store, create_file(Ino::ROOT, hidden, A)), Some(Errno::PERM));
    commit_all(&mut store, vec![create_file(Ino::ROOT, "a", A)], b"");
    let to_hidden = rename((Ino::ROOT, "a"), (Ino::ROOT, hidden), A, None);
    assert_eq!(refusal(&mut store, to_hidden), Some(Errno::PERM));
    let from_hidden = rename((Ino::ROOT, hidden), (Ino::ROOT, "b"), Ino(2), None);
    assert_eq!(refusal(&mut store, from_hidden), Some(Errno::PERM));
    assert_eq!(refusal(&mut store, unlink(Ino::ROOT, hidden, Ino(2))), Some(Errno::PERM));
    for own in 2..6 {
        assert_eq!(store.attributes(Ino(own)), Err(Errno::STALE));
        assert_eq!(refusal(&mut store, create_file(Ino(own), "a", B)), Some(Errno::STALE));
    }
    // Elsewhere, it is a name like others.
    commit_all(&mut store, vec![create(Ino::ROOT, "d", B, NewNode::Directory)], b"");
    commit_all(&mut store, vec![create_file(B, hidden, C)], b"");
    assert_eq!(look_up(&mut store, B, hidden), Some(C));
}

/// A second server is refused, until the first one has ended.
#[test]
fn a_second_server_is_refused() {
    let directory = temporary();
    let store = open(directory.path());
    let second = DirectoryStore::open(directory.path(), DirectoryOptions::default());
    assert!(matches!(second, Err(OpenError::InUse { .. })));
    let secret = store.secret();
    drop(store);
    assert_eq!(open(directory.path()).secret(), secret);
}

/// STORE-4: numbers of nodes stay the same, wherever the node moves, and are reached again after a
/// restart.
#[test]
fn numbers_are_stable() {
    let directory = temporary();
    fs::create_dir_all(directory.path().join("x/y")).unwrap();
    fs::write(directory.path().join("x/y/file"), "contents").unwrap();
    let mut store = open(directory.path());
    let x = look_up(&mut store, Ino::ROOT, "x").unwrap();
    let y = look_up(&mut store, x, "y").unwrap();
    let file = look_up(&mut store, y, "file").unwrap();
    assert!([x, y, file].iter().all(|ino| ino.0 >> 63 == 1));
    commit_all(&mut store, vec![rename((x, "y"), (Ino::ROOT, "z"), y, None)], b"");
    assert_eq!(&store.read(file, 0, 100).unwrap()[..], b"contents");
    commit_all(&mut store, vec![create_file(y, "created", A)], b"");
    store.close().unwrap();

    let mut store = open(directory.path());
    assert_eq!(&store.read(file, 0, 100).unwrap()[..], b"contents");
    assert_eq!(look_up(&mut store, Ino::ROOT, "z"), Some(y));
    assert_eq!(look_up(&mut store, y, "created"), Some(A));
    drop(store);

    // Another process moves a file while no server runs.
    fs::rename(directory.path().join("z/file"), directory.path().join("file")).unwrap();
    let mut store = open(directory.path());
    assert_eq!(look_up(&mut store, Ino::ROOT, "file"), Some(file));
    assert_eq!(&store.read(file, 0, 100).unwrap()[..], b"contents");
}

/// STORE-4: ranges of numbers do not overlap, also after a crash.
#[test]
fn reserved_numbers_are_not_given_again() {
    let directory = temporary();
    let mut end = FIRST;
    for round in 0..3 {
        let mut store = open(directory.path());
        for count in [1, 1000, 3 << 20] {
            let first = store.reserve_inos(count).unwrap();
            assert!(first >= end);
            end = first + count;
        }
        assert!(store.reserve_inos(u64::MAX).is_err());
        if round == 1 {
            store.close().unwrap();
        }
    }
}

/// STORE-3: a batch that was applied is not applied again; numbers survive, until the client is
/// forgotten.
#[test]
fn batches_are_applied_once() {
    let directory = temporary();
    let mut store = open(directory.path());
    commit_all(&mut store, vec![create_file(Ino::ROOT, "a", A)], b"");
    let records = vec![create_file(Ino::ROOT, "b", B)];
    let batch = ClientBatch { client: client(1), number: 1, records, payload: Bytes::new() };
    store.append(batch.clone());
    assert_eq!(store.commit().unwrap(), []);
    assert_eq!(look_up(&mut store, Ino::ROOT, "b"), None);
    drop(store);
    let mut store = open(directory.path());
    assert_eq!(store.applied(client(1)), 1);
    store.forget_client(client(1));
    store.append(batch);
    assert_eq!(store.commit().unwrap().len(), 1);
    assert_eq!(store.applied(client(1)), 1);
    store.forget_client(client(1));
    store.close().unwrap();
    assert_eq!(open(directory.path()).applied(client(1)), 0);
}

/// A large directory is listed in parts, each name once and in order.
#[test]
fn a_large_directory_is_listed_in_parts() {
    let directory = temporary();
    for number in 0..10_000 {
        fs::write(directory.path().join(format!("{number:x}")), "").unwrap();
    }
    let mut store = open(directory.path());
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let part = store.list(Ino::ROOT, after.as_ref(), 777).unwrap();
        assert!(part.entries.len() <= 777);
        names.extend(part.entries.iter().map(|(name, ..)| name.clone()));
        if part.is_complete {
            break;
        }
        after = names.last().cloned();
    }
    assert_eq!(names.len(), 10_000);
    assert!(names.is_sorted());
}

/// Names are bytes.
#[test]
fn names_of_any_bytes() {
    let directory = temporary();
    let mut store = open(directory.path());
    let names = [vec![0xff; 255], vec![b'\n'], b"...".to_vec(), b"log.0".to_vec(), b"\\".to_vec()];
    for (ino, bytes) in (FIRST..).zip(&names) {
        let name = Name::new(bytes.clone()).unwrap();
        let parent = Some((handle(Ino::ROOT), name.clone()));
        let (node, time) = (NewNode::File, at(1));
        let record =
            Record::Create { parent, ino: Ino(ino), node, mode: 0o600, uid: 0, gid: 0, time };
        assert_eq!(refusal(&mut store, record), None);
        assert_eq!(store.look_up(Ino::ROOT, &name).unwrap().unwrap().0, Ino(ino));
    }
    assert_eq!(store.list(Ino::ROOT, None, 10).unwrap().entries.len(), names.len());
}

/// Holes are found, made, and kept when a range is copied.
#[test]
fn sparse_files() {
    let directory = temporary();
    let mut store = open(directory.path());
    let (from, to) = (handle(A), handle(B));
    let copy =
        Record::CopyRange { from, from_offset: 0, to, to_offset: 0, length: i64::MAX as u64 };
    let size = |size| SetAttributes { size: Some(size), ..SetAttributes::default() };
    let records = vec![
        create_file(Ino::ROOT, "a", A),
        create_file(Ino::ROOT, "b", B),
        write(A, 1 << 20, 0, 5),
        Record::SetAttributes { node: handle(A), set: size(1 << 40) },
        copy,
        write(B, 3 << 20, 0, 5),
    ];
    commit_all(&mut store, records, b"bytes");
    for file in [A, B] {
        assert_eq!(store.attributes(file).unwrap().size, 1 << 40);
        assert!(store.attributes(file).unwrap().blocks < 1 << 20);
        assert_eq!(store.seek(file, 0, SeekTarget::Data), Ok(1 << 20));
        assert_eq!(&store.read(file, 1 << 20, 5).unwrap()[..], b"bytes");
        assert_eq!(store.seek(file, 0, SeekTarget::Hole), Ok(0));
        assert_eq!(store.seek(file, 1 << 41, SeekTarget::Data), Err(Errno::NXIO));
    }
    let mode = AllocateMode::PunchHole;
    let punch = Record::Allocate { file: from, mode, offset: 0, length: 2 << 20 };
    commit_all(&mut store, vec![punch], b"");
    assert_eq!(store.seek(A, 0, SeekTarget::Data), Err(Errno::NXIO));
    assert_eq!(store.read(A, (1 << 40) - 2, 100).unwrap().len(), 2);
    // A copy onto itself.
    let copy = Record::CopyRange { from: to, from_offset: 0, to, to_offset: 5, length: 10 };
    assert_eq!(refusal(&mut store, copy), Some(Errno::INVAL));
}

/// A node without a name is kept until it is dropped, also when the server was restarted.
#[test]
fn orphans_survive() {
    let directory = temporary();
    let mut store = open(directory.path());
    let nameless = Record::Create {
        parent: None,
        ino: B,
        node: NewNode::File,
        mode: 0o600,
        uid: 0,
        gid: 0,
        time: at(1),
    };
    let records = vec![create_file(Ino::ROOT, "a", A), write(A, 0, 0, 5), nameless];
    commit_all(&mut store, records, b"bytes");
    let unlinked = commit(&mut store, client(1), vec![unlink(Ino::ROOT, "a", A)], Bytes::new());
    assert_eq!(unlinked.orphaned, [A]);
    assert!(unlinked.changed.iter().any(|(ino, attributes)| *ino == A && attributes.links == 0));
    for _ in 0..2 {
        store = {
            drop(store);
            open(directory.path())
        };
        assert_eq!(store.orphans(), [A, B]);
        assert_eq!(&store.read(A, 0, 10).unwrap()[..], b"bytes");
    }
    let link = Record::Link { node: handle(B), parent: handle(Ino::ROOT), name: name("b") };
    commit_all(&mut store, vec![link, Record::Close { node: handle(B) }], b"");
    store.drop_orphan(A);
    store.drop_orphan(B);
    assert_eq!(store.attributes(A), Err(Errno::STALE));
    assert_eq!(store.orphans(), []);
    store.close().unwrap();
    let mut store = open(directory.path());
    assert_eq!(store.orphans(), []);
    assert_eq!(look_up(&mut store, Ino::ROOT, "b"), Some(B));
    assert_eq!(store.attributes(B).unwrap().links, 1);
}

/// A rename onto a name leaves the node that had it as an orphan.
#[test]
fn what_a_rename_replaces_is_an_orphan() {
    let directory = temporary();
    let mut store = open(directory.path());
    let records = vec![create_file(Ino::ROOT, "a", A), create_file(Ino::ROOT, "b", B)];
    commit_all(&mut store, records, b"");
    let replace = rename((Ino::ROOT, "a"), (Ino::ROOT, "b"), A, Some(B));
    let replaced = commit(&mut store, client(1), vec![replace], Bytes::new());
    assert_eq!((replaced.failed, replaced.orphaned), (None, vec![B]));
    assert_eq!(look_up(&mut store, Ino::ROOT, "b"), Some(A));
    assert_eq!(look_up(&mut store, Ino::ROOT, "a"), None);
    commit_all(&mut store, vec![Record::Close { node: handle(B) }], b"");
    assert_eq!(store.orphans(), [B], "another client may have it open");
    store.drop_orphan(B);
    assert_eq!(store.attributes(B), Err(Errno::STALE));
}

/// Records that do not apply report the reason, and no later record is applied.
#[test]
fn preconditions() {
    let directory = temporary();
    fs::write(directory.path().join("there"), "").unwrap();
    let mut store = open(directory.path());
    let root = handle(Ino::ROOT);
    let records = vec![
        create(Ino::ROOT, "d", A, NewNode::Directory),
        create_file(A, "f", B),
        create_file(Ino::ROOT, "there", C),
        create_file(Ino::ROOT, "never", C),
    ];
    let applied = commit(&mut store, client(1), records, Bytes::new());
    assert_eq!(applied.failed, Some((2, Errno::EXIST)));
    assert_eq!(look_up(&mut store, Ino::ROOT, "never"), None);
    let remove = Record::RemoveDirectory { parent: root, name: name("d"), node: handle(A) };
    assert_eq!(refusal(&mut store, remove.clone()), Some(Errno::NOTEMPTY));
    assert_eq!(refusal(&mut store, unlink(Ino::ROOT, "there", B)), Some(Errno::STALE));
    assert_eq!(refusal(&mut store, rename((A, "f"), (A, "g"), B, Some(C))), Some(Errno::STALE));
    let into_itself = rename((Ino::ROOT, "d"), (A, "d"), A, None);
    assert_eq!(refusal(&mut store, into_itself), Some(Errno::INVAL));
    let no_xattr = Record::RemoveXattr { node: handle(A), name: "user.x".into() };
    assert_eq!(refusal(&mut store, no_xattr), Some(Errno::NODATA));
    let exchange = Record::Rename {
        from: (root, name("d")),
        to: (root, name("x")),
        node: handle(A),
        replaced: None,
        exchange: true,
    };
    assert_eq!(refusal(&mut store, exchange), Some(Errno::NOENT));
    // Another process fills a directory that is known to be empty.
    commit_all(&mut store, vec![unlink(A, "f", B)], b"");
    fs::write(directory.path().join("d/other"), "").unwrap();
    assert_eq!(refusal(&mut store, remove.clone()), Some(Errno::NOTEMPTY));
    fs::remove_file(directory.path().join("d/other")).unwrap();
    assert_eq!(refusal(&mut store, remove), None);
    assert_eq!(store.attributes(A), Err(Errno::STALE));
}

/// STORE-6: every change gets a version that was not shown before.
#[test]
fn versions_move_with_each_change() {
    let directory = temporary();
    let mut store = open(directory.path());
    commit_all(&mut store, vec![create_file(Ino::ROOT, "a", A)], b"");
    let mut versions = vec![store.attributes(A).unwrap().version];
    for _ in 0..200 {
        let applied = commit(&mut store, client(1), vec![write(A, 0, 0, 5)], &b"bytes"[..]);
        let changed = applied.changed.iter().find(|(ino, _)| *ino == A).unwrap().1;
        assert!(!versions.contains(&changed.version));
        assert_eq!(store.attributes(A).unwrap().version, changed.version);
        versions.push(changed.version);
    }
}

/// Attributes are set as the records specify, regardless of the server's umask.
#[test]
fn attributes_are_exact() {
    let directory = temporary();
    let mut store = open(directory.path());
    let nodes = [NewNode::File, NewNode::Directory];
    for (ino, node) in (FIRST..).zip(nodes) {
        let parent = Some((handle(Ino::ROOT), name(&ino.to_string())));
        let (mode, time) = (0o7777, at(-5));
        let ino = Ino(ino);
        let record = Record::Create { parent, ino, node, mode, uid: 3, gid: 4, time };
        commit_all(&mut store, vec![record], b"");
        let is = store.attributes(ino).unwrap();
        assert_eq!((is.mode, is.mtime, is.atime), (0o7777, at(-5), at(-5)));
        if store.attributes(Ino::ROOT).unwrap().uid == 0 {
            assert_eq!((is.uid, is.gid), (3, 4));
        }
        let set = SetAttributes {
            mode: Some(0o640),
            uid: Some(5),
            atime: Some(at(8)),
            mtime: Some(at(9)),
            ..SetAttributes::default()
        };
        commit_all(&mut store, vec![Record::SetAttributes { node: handle(ino), set }], b"");
        let is = store.attributes(ino).unwrap();
        assert_eq!((is.mode, is.atime, is.mtime), (0o640, at(8), at(9)));
    }
    let value: Bytes = vec![b'v'; 300].into();
    let set = Record::SetXattr { node: handle(A), name: "user.x".into(), value: value.clone() };
    commit_all(&mut store, vec![set], b"");
    assert_eq!(store.xattr(A, b"user.x"), Ok(value));
    assert_eq!(store.xattr(A, b"user.y"), Err(Errno::NODATA));
}

/// FRAME-2: a log that was changed is refused, and a torn end is cut off.
#[test]
fn a_damaged_log_is_refused() {
    let directory = temporary();
    let mut store = open(directory.path());
    for ino in FIRST..FIRST + 3 {
        commit_all(&mut store, vec![create_file(Ino::ROOT, &ino.to_string(), Ino(ino))], b"");
    }
    drop(store);
    let log = directory.path().join(".apus-fs/log.0");
    let bytes = fs::read(&log).unwrap();
    let mut damaged = bytes.clone();
    damaged[50] ^= 1;
    fs::write(&log, damaged).unwrap();
    let refused = DirectoryStore::open(directory.path(), DirectoryOptions::default());
    assert!(matches!(refused, Err(OpenError::Damaged { position: 0, .. })));
    // In the frame of the third batch.
    fs::write(&log, &bytes[..bytes.len() * 2 / 3 + 20]).unwrap();
    let mut store = open(directory.path());
    assert_eq!(store.applied(client(1)), 2);
    let last = (FIRST + 2).to_string();
    // Its creation is not in the log any more: then it was never confirmed, and is a file like
    // others.
    assert!(look_up(&mut store, Ino::ROOT, &last).is_some());
}

/// A replay leaves files alone that other processes have put where the log had some.
#[test]
fn a_replay_keeps_files_of_others() {
    let directory = temporary();
    fs::write(directory.path().join("mine"), "old").unwrap();
    let mut store = open(directory.path());
    let mine = look_up(&mut store, Ino::ROOT, "mine").unwrap();
    let records = vec![create(Ino::ROOT, "d", A, NewNode::Directory), create_file(A, "f", B)];
    commit_all(&mut store, records, b"");
    commit_all(&mut store, vec![unlink(Ino::ROOT, "mine", mine)], b"");
    drop(store);
    fs::write(directory.path().join("mine"), "new").unwrap();
    fs::write(directory.path().join("d/other"), "other").unwrap();
    let mut store = open(directory.path());
    assert_eq!(fs::read(directory.path().join("mine")).unwrap(), b"new");
    assert_eq!(fs::read(directory.path().join("d/other")).unwrap(), b"other");
    assert_eq!(look_up(&mut store, A, "f"), Some(B));
    assert_ne!(look_up(&mut store, Ino::ROOT, "mine"), Some(mine));
}

/// The log does not grow without bounds.
#[test]
fn checkpoints_bound_the_log() {
    let directory = temporary();
    let options = DirectoryOptions { checkpoint_bytes: 10_000, ..DirectoryOptions::default() };
    let mut store = DirectoryStore::open(directory.path(), options).unwrap();
    let payload = vec![b'x'; 1000];
    commit_all(&mut store, vec![create_file(Ino::ROOT, "a", A)], b"");
    for offset in 0..100 {
        let record = write(A, offset * 1000, 0, 1000);
        let applied = commit(&mut store, client(1), vec![record], payload.clone());
        assert_eq!(applied.failed, None);
    }
    let entries = fs::read_dir(directory.path().join(".apus-fs")).unwrap().flatten();
    let logs: Vec<_> =
        entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"log.")).collect();
    assert_eq!(logs.len(), 1);
    assert!(logs[0].metadata().unwrap().len() < 12_000);
    drop(store);
    assert_eq!(open(directory.path()).attributes(A).unwrap().size, 100_000);
}

/// A returning client receives the list of its failed batches, whether the table or the file system
/// refused them.
#[test]
fn the_last_failure_survives_restarts() {
    for replays_all in [false, true] {
        let directory = temporary();
        let mut store = open(directory.path());
        commit_all(&mut store, vec![create_file(Ino::ROOT, "a", A)], b"");
        let no_xattr = Record::RemoveXattr { node: handle(A), name: "user.x".into() };
        let absent = unlink(Ino::ROOT, "b", B);
        for (number, record, error) in
            [(2, no_xattr.clone(), Errno::NODATA), (3, absent, Errno::NOENT)]
        {
            assert_eq!(refusal(&mut store, record), Some(error));
            for _ in 0..2 {
                drop(store);
                let options = options(FailPoint::default(), replays_all);
                store = DirectoryStore::open(directory.path(), options).unwrap();
                let failed = FailedBatch { number, record: 0, error };
                assert_eq!(store.last_failure(client(1)), Some(failed));
            }
        }
        store.forget_client(client(1));
        assert_eq!(store.last_failure(client(1)), None);
    }
}
