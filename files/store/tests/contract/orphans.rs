//! Nodes without a name.

use apus_fs_core::Store;
use apus_fs_core::wire::{Errno, Ino, NewNode, Record};

use crate::export::{Export, handle};
use crate::world::World;

/// A file that has lost its last name is read and written until it is dropped.
pub(crate) fn orphans_are_kept_until_dropped<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let other = export.file(Ino::ROOT, "g");
    export.write(file, 0, b"kept").unwrap();
    export.unlink(Ino::ROOT, "f", file).unwrap();
    assert_eq!(export.links(file), 0);
    export.write(file, 4, b" on").unwrap();
    assert_eq!(export.contents(file), b"kept on");
    assert_eq!(export.store().orphans(), [file]);
    // Only the server core knows whether another client has it open.
    export.one(Record::Close { node: handle(file) }).unwrap();
    assert_eq!(export.store().orphans(), [file]);
    assert_eq!(export.contents(file), b"kept on");
    export.rename((Ino::ROOT, "g"), (Ino::ROOT, "f"), other, None).unwrap();
    export.store().drop_orphan(other);
    assert!(export.store().attributes(other).is_ok(), "it has a name");
    export.store().drop_orphan(file);
    assert!(export.store().orphans().is_empty());
    assert_eq!(export.store().attributes(file), Err(Errno::STALE));
    assert_eq!(export.write(file, 0, b"x"), Err(Errno::STALE));
}

/// STORE-1: a crash does not drop orphans.
pub(crate) fn orphans_survive_crashes<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let other = export.file(Ino::ROOT, "g");
    export.write(file, 0, b"kept").unwrap();
    // A name that is taken by a rename orphans as well.
    export.rename((Ino::ROOT, "g"), (Ino::ROOT, "f"), other, Some(file)).unwrap();
    export.world.crash(0);
    assert_eq!(export.store().orphans(), [file]);
    assert_eq!(export.contents(file), b"kept");
    assert_eq!(export.links(file), 0);
}

/// `O_TMPFILE` and `linkat`.
pub(crate) fn a_file_without_a_name_can_get_one<W: World>() {
    let mut export = Export::<W>::new();
    let (record, file) = export.create_record(None, NewNode::File);
    let applied = export.apply(vec![record], b"");
    assert_eq!((applied.failed, applied.orphaned), (None, vec![file]));
    export.write(file, 0, b"unnamed").unwrap();
    assert_eq!(export.links(file), 0);
    export.world.crash(0);
    assert_eq!(export.store().orphans(), [file]);
    export.link(file, Ino::ROOT, "named").unwrap();
    assert_eq!(export.links(file), 1);
    assert!(export.store().orphans().is_empty());
    assert_eq!(export.find(Ino::ROOT, "named"), Some(file));
    assert_eq!(export.contents(file), b"unnamed");
}
