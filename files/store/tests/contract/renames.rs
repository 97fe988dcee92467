//! Renames, with the results that Linux has for them.

use apus_fs_core::Store;
use apus_fs_core::wire::{Errno, Ino};

use crate::export::Export;
use crate::world::World;

const ROOT: Ino = Ino::ROOT;

/// Files and directories move between directories, with their contents.
pub(crate) fn names_move<W: World>() {
    let mut export = Export::<W>::new();
    let (one, two) = (export.directory(ROOT, "one"), export.directory(ROOT, "two"));
    let inner = export.directory(one, "inner");
    let file = export.file(inner, "f");
    export.rename((one, "inner"), (two, "moved"), inner, None).unwrap();
    export.rename((inner, "f"), (ROOT, "f"), file, None).unwrap();
    assert_eq!(export.find(one, "inner"), None);
    assert_eq!(export.find(two, "moved"), Some(inner));
    assert_eq!(export.find(inner, "f"), None);
    assert_eq!(export.find(ROOT, "f"), Some(file));
    assert_eq!(export.links(file), 1);
    export.remove_directory(ROOT, "one", one).unwrap();
    assert_eq!(export.remove_directory(ROOT, "two", two), Err(Errno::NOTEMPTY));
}

/// A rename takes a name away from the node that had it.
pub(crate) fn files_are_replaced<W: World>() {
    let mut export = Export::<W>::new();
    let (new, old) = (export.file(ROOT, "new"), export.file(ROOT, "old"));
    export.link(old, ROOT, "also").unwrap();
    export.rename((ROOT, "new"), (ROOT, "old"), new, Some(old)).unwrap();
    assert_eq!(export.find(ROOT, "new"), None);
    assert_eq!(export.find(ROOT, "old"), Some(new));
    assert_eq!(export.find(ROOT, "also"), Some(old));
    assert_eq!(export.links(old), 1);
    let (full, empty) = (export.directory(ROOT, "full"), export.directory(ROOT, "empty"));
    export.file(full, "f");
    export.rename((ROOT, "full"), (ROOT, "empty"), full, Some(empty)).unwrap();
    assert_eq!(export.find(ROOT, "empty"), Some(full));
    // Two names of one file both stay.
    export.link(old, ROOT, "third").unwrap();
    export.rename((ROOT, "also"), (ROOT, "third"), old, Some(old)).unwrap();
    assert_eq!(export.find(ROOT, "also"), Some(old));
    assert_eq!(export.find(ROOT, "third"), Some(old));
}

/// Names are exchanged, also between a file and a directory.
pub(crate) fn names_are_exchanged<W: World>() {
    let mut export = Export::<W>::new();
    let directory = export.directory(ROOT, "d");
    let (file, inner) = (export.file(ROOT, "f"), export.directory(directory, "inner"));
    let deep = export.file(inner, "deep");
    export.exchange((ROOT, "f"), (directory, "inner"), file, Some(inner)).unwrap();
    assert_eq!(export.find(ROOT, "f"), Some(inner));
    assert_eq!(export.find(directory, "inner"), Some(file));
    assert_eq!(export.find(inner, "deep"), Some(deep));
    assert!(export.store().orphans().is_empty());
    assert_eq!(export.exchange((ROOT, "f"), (ROOT, "absent"), inner, None), Err(Errno::NOENT));
}

/// Renames that Linux refuses are refused with the same error numbers, and have no effect.
pub(crate) fn impossible_renames_are_refused<W: World>() {
    let mut export = Export::<W>::new();
    let (outer, file) = (export.directory(ROOT, "outer"), export.file(ROOT, "f"));
    let inner = export.directory(outer, "inner");
    let empty = export.directory(ROOT, "empty");
    let cases = [
        ((ROOT, "absent"), (ROOT, "x"), file, None, Errno::NOENT),
        ((ROOT, "outer"), (inner, "x"), outer, None, Errno::INVAL),
        ((ROOT, "outer"), (outer, "x"), outer, None, Errno::INVAL),
        ((outer, "inner"), (ROOT, "outer"), inner, Some(outer), Errno::NOTEMPTY),
        ((ROOT, "empty"), (ROOT, "outer"), empty, Some(outer), Errno::NOTEMPTY),
        ((ROOT, "empty"), (ROOT, "f"), empty, Some(file), Errno::NOTDIR),
        ((ROOT, "f"), (ROOT, "empty"), file, Some(empty), Errno::ISDIR),
    ];
    for (from, to, node, replaced, expected) in cases {
        assert_eq!(export.rename(from, to, node, replaced), Err(expected), "{from:?} to {to:?}");
    }
    assert_eq!(
        export.exchange((outer, "inner"), (ROOT, "outer"), inner, Some(outer)),
        Err(Errno::INVAL)
    );
    for (directory, text, node) in
        [(ROOT, "outer", outer), (ROOT, "f", file), (outer, "inner", inner), (ROOT, "empty", empty)]
    {
        assert_eq!(export.find(directory, text), Some(node));
    }
}

/// A rename is refused if one of its names leads to another node than the record states.
pub(crate) fn stale_renames_are_refused<W: World>() {
    let mut export = Export::<W>::new();
    let (file, other) = (export.file(ROOT, "f"), export.file(ROOT, "other"));
    assert_eq!(export.rename((ROOT, "f"), (ROOT, "x"), other, None), Err(Errno::STALE));
    assert_eq!(export.rename((ROOT, "f"), (ROOT, "other"), file, Some(file)), Err(Errno::STALE));
    assert!(export.rename((ROOT, "f"), (ROOT, "other"), file, None).is_err());
    assert!(export.rename((ROOT, "f"), (ROOT, "x"), file, Some(other)).is_err());
    assert_eq!(export.find(ROOT, "f"), Some(file));
    assert_eq!(export.find(ROOT, "other"), Some(other));
    assert_eq!(export.find(ROOT, "x"), None);
}
