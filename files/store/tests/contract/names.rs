//! Names: creation, links, removal, listings.

use apus_fs_core::Store;
use apus_fs_core::wire::{Errno, Ino, Name, NewNode, NodeKind};

use crate::export::{Export, name, unlink};
use crate::world::World;

/// Files, directories, links and pipes are found as they were created.
pub(crate) fn every_kind_of_node_is_created<W: World>() {
    let mut export = Export::<W>::new();
    let kinds = [
        (NewNode::File, NodeKind::File, 1, 0o750),
        (NewNode::Directory, NodeKind::Directory, 2, 0o750),
        (NewNode::Symlink { target: "to".into() }, NodeKind::Symlink, 1, 0o777),
        (NewNode::Special { kind: NodeKind::Fifo, device: 0 }, NodeKind::Fifo, 1, 0o750),
        (NewNode::Special { kind: NodeKind::Socket, device: 0 }, NodeKind::Socket, 1, 0o750),
    ];
    for (node, kind, links, mode) in kinds {
        let text = format!("{kind:?}");
        let ino = export.try_create((Ino::ROOT, &text), node).unwrap();
        let (found, attributes) =
            export.store().look_up(Ino::ROOT, &name(&text)).unwrap().expect("it was created");
        assert_eq!(found, ino);
        assert_eq!(export.store().attributes(ino), Ok(attributes));
        assert_eq!((attributes.kind, attributes.mode), (kind, mode));
        // Not every file system counts directories.
        assert!(attributes.links == links || kind == NodeKind::Directory);
        assert_eq!((attributes.uid, attributes.gid), W::owner());
    }
    let longest = Name::new(vec![0xff; 255]).unwrap();
    assert_eq!(export.store().look_up(Ino::ROOT, &longest), Ok(None));
}

/// A name is given once, and only in a directory that exists.
pub(crate) fn taken_names_are_refused<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let directory = export.directory(Ino::ROOT, "d");
    for text in ["f", "d"] {
        assert_eq!(export.try_create((Ino::ROOT, text), NewNode::File), Err(Errno::EXIST));
        assert_eq!(export.try_create((Ino::ROOT, text), NewNode::Directory), Err(Errno::EXIST));
        assert_eq!(export.link(file, Ino::ROOT, text), Err(Errno::EXIST));
    }
    assert_eq!(export.try_create((file, "x"), NewNode::File), Err(Errno::NOTDIR));
    assert_eq!(export.link(directory, Ino::ROOT, "x"), Err(Errno::PERM));
    let unknown = export.ino();
    assert_eq!(export.try_create((unknown, "x"), NewNode::File), Err(Errno::STALE));
    assert_eq!(export.store().look_up(unknown, &name("x")), Err(Errno::STALE));
    assert_eq!(export.store().look_up(file, &name("x")), Err(Errno::NOTDIR));
}

/// Names are removed if they lead to the node that the record names.
pub(crate) fn names_are_removed<W: World>() {
    let mut export = Export::<W>::new();
    let (file, other) = (export.file(Ino::ROOT, "f"), export.file(Ino::ROOT, "other"));
    let directory = export.directory(Ino::ROOT, "d");
    let inner = export.file(directory, "inner");
    assert_eq!(export.unlink(Ino::ROOT, "absent", file), Err(Errno::NOENT));
    assert_eq!(export.unlink(Ino::ROOT, "f", other), Err(Errno::STALE));
    assert_eq!(export.unlink(Ino::ROOT, "d", directory), Err(Errno::ISDIR));
    assert_eq!(export.remove_directory(Ino::ROOT, "f", file), Err(Errno::NOTDIR));
    assert_eq!(export.remove_directory(Ino::ROOT, "d", other), Err(Errno::STALE));
    assert_eq!(export.remove_directory(Ino::ROOT, "d", directory), Err(Errno::NOTEMPTY));
    assert_eq!(export.remove_directory(Ino::ROOT, "absent", directory), Err(Errno::NOENT));
    export.unlink(directory, "inner", inner).unwrap();
    export.remove_directory(Ino::ROOT, "d", directory).unwrap();
    assert_eq!(export.find(Ino::ROOT, "d"), None);
    assert!(export.try_create((directory, "x"), NewNode::File).is_err());
    export.unlink(Ino::ROOT, "f", file).unwrap();
    assert_eq!(export.find(Ino::ROOT, "f"), None);
    assert_eq!(export.find(Ino::ROOT, "other"), Some(other));
}

/// Names of a file are counted, and its contents are shared by all of them.
pub(crate) fn links_are_counted<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let directory = export.directory(Ino::ROOT, "d");
    export.link(file, directory, "g").unwrap();
    assert_eq!(export.links(file), 2);
    assert_eq!(export.find(directory, "g"), Some(file));
    export.unlink(Ino::ROOT, "f", file).unwrap();
    assert_eq!(export.links(file), 1);
    export.write(file, 0, b"shared").unwrap();
    assert_eq!(export.contents(file), b"shared");
    assert!(!export.store().orphans().contains(&file));
}

/// Names are listed in their order, piece by piece.
pub(crate) fn listings_go_on_behind_a_name<W: World>() {
    let mut export = Export::<W>::new();
    let mut expected: Vec<_> = (0..25)
        .map(|index| (format!("n{}", (index * 7) % 25), ()))
        .map(|(text, ())| (name(&text), export.file(Ino::ROOT, &text)))
        .collect();
    expected.sort();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let part = export.store().list(Ino::ROOT, after.as_ref(), 4).unwrap();
        assert!(part.entries.len() <= 4);
        found.extend(part.entries.iter().map(|(text, ino, _)| (text.clone(), *ino)));
        if part.is_complete {
            break;
        }
        after = Some(part.entries.last().expect("a part that is not the last has names").0.clone());
    }
    assert_eq!(found, expected);
    let behind = export.store().list(Ino::ROOT, Some(&name("zzz")), 4).unwrap();
    assert!(behind.entries.is_empty() && behind.is_complete);
}

/// A batch reports the nodes that it has changed, with the attributes that they have now, and those
/// it has orphaned.
pub(crate) fn changed_nodes_are_reported<W: World>() {
    let mut export = Export::<W>::new();
    let gone = export.file(Ino::ROOT, "gone");
    let still = export.file(Ino::ROOT, "still");
    let (create, new) = export.create_record(Some((Ino::ROOT, "new")), NewNode::File);
    let applied = export.apply(vec![create, unlink(Ino::ROOT, "gone", gone)], b"");
    assert_eq!(applied.orphaned, [gone]);
    for node in [Ino::ROOT, new] {
        let attributes = export.store().attributes(node).unwrap();
        assert!(applied.changed.contains(&(node, attributes)), "{node} has changed");
    }
    assert!(applied.changed.iter().all(|(node, _)| *node != still));
}
