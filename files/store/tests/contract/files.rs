//! Contents and attributes of nodes.

use apus_fs_core::Store;
use apus_fs_core::wire::{AllocateMode, Errno, Ino, NewNode, Record, SeekTarget, SetAttributes};
use bytes::Bytes;

use crate::export::{Export, handle, time};
use crate::world::World;

/// Bytes are read as they were written, gaps as zeros, and no bytes beyond the end.
pub(crate) fn bytes_are_read_as_written<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    export.write(file, 10_000, b"end").unwrap();
    export.write(file, 4090, b"across two pages").unwrap();
    export.write(file, 0, b"").unwrap();
    let store = export.store();
    assert_eq!(store.attributes(file).unwrap().size, 10_003);
    assert_eq!(store.read(file, 4088, 20).unwrap(), &b"\0\0across two pages\0\0"[..]);
    assert_eq!(store.read(file, 10_000, 100).unwrap(), &b"end"[..]);
    assert_eq!(store.read(file, 10_003, 100).unwrap(), Bytes::new());
    assert_eq!(store.read(file, 1 << 50, 100).unwrap(), Bytes::new());
    assert_eq!(store.attributes(file).unwrap().mtime, time(2_000_000));
}

/// A file that is cut off and extended has zeros where it had bytes.
pub(crate) fn sizes_change<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    export.write(file, 0, &[b'x'; 5000]).unwrap();
    export.truncate(file, 4097).unwrap();
    export.truncate(file, 1 << 33).unwrap();
    let store = export.store();
    assert_eq!(store.attributes(file).unwrap().size, 1 << 33);
    assert_eq!(store.read(file, 4095, 4).unwrap(), &b"xx\0\0"[..]);
    assert_eq!(store.read(file, (1 << 33) - 2, 4).unwrap(), &b"\0\0"[..]);
}

/// `fallocate` zeroes ranges, and extends the file only on request.
pub(crate) fn ranges_are_zeroed<W: World>() {
    let cases = [
        (AllocateMode::Extend, 12_000, true),
        (AllocateMode::KeepSize, 10_000, true),
        (AllocateMode::PunchHole, 10_000, false),
        (AllocateMode::Zero, 12_000, false),
        (AllocateMode::ZeroKeepSize, 10_000, false),
    ];
    for (mode, size, keeps_bytes) in cases {
        let mut export = Export::<W>::new();
        let node = export.file(Ino::ROOT, "f");
        export.write(node, 0, &[b'x'; 10_000]).unwrap();
        let (file, offset, length) = (handle(node), 3000, 9000);
        match export.one(Record::Allocate { file, mode, offset, length }) {
            // Not every file system can do it.
            Err(Errno::OPNOTSUPP) => continue,
            result => result.unwrap(),
        }
        let mut expected = vec![b'x'; 10_000];
        if !keeps_bytes {
            expected[3000..].fill(0);
        }
        expected.resize(size, 0);
        assert!(export.contents(node) == expected, "{mode:?}");
        let none = Record::Allocate { file, mode, offset, length: 0 };
        assert_eq!(export.one(none), Err(Errno::INVAL));
    }
}

/// Bytes are copied between files and within one, up to the end of the source.
pub(crate) fn bytes_are_copied<W: World>() {
    let mut export = Export::<W>::new();
    let (from, to) = (export.file(Ino::ROOT, "from"), export.file(Ino::ROOT, "to"));
    export.write(from, 0, b"0123456789").unwrap();
    let copy = |from_offset, to: Ino, to_offset, length| Record::CopyRange {
        from: handle(from),
        from_offset,
        to: handle(to),
        to_offset,
        length,
    };
    export.one(copy(6, to, 2, 100)).unwrap();
    assert_eq!(export.contents(to), b"\0\x006789");
    export.one(copy(50, to, 0, 100)).unwrap();
    assert_eq!(export.contents(to), b"\0\x006789");
    export.one(copy(0, from, 10, 4)).unwrap();
    assert_eq!(export.contents(from), b"01234567890123");
    assert_eq!(export.one(copy(0, from, 2, 4)), Err(Errno::INVAL));
}

/// Data and holes are found; a file system without holes has one at the end of each file.
pub(crate) fn holes_are_found<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    export.write(file, 1 << 20, b"data").unwrap();
    let end = (1 << 20) + 4;
    let store = export.store();
    assert_eq!(store.seek(file, 1 << 20, SeekTarget::Data), Ok(1 << 20));
    assert_eq!(store.seek(file, 1 << 20, SeekTarget::Hole), Ok(end));
    assert!(matches!(store.seek(file, 0, SeekTarget::Data), Ok(0 | 0x10_0000)));
    assert_eq!(store.seek(file, end, SeekTarget::Data), Err(Errno::NXIO));
    assert_eq!(store.seek(file, end, SeekTarget::Hole), Err(Errno::NXIO));
}

/// Attributes are set, and those that are not named stay.
pub(crate) fn attributes_are_set<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    export.write(file, 0, b"0123").unwrap();
    let mode = SetAttributes { mode: Some(0o4711), ..SetAttributes::default() };
    export.set(file, mode).unwrap();
    let times = SetAttributes {
        size: Some(2),
        atime: Some(time(-5)),
        mtime: Some(time(77)),
        ..SetAttributes::default()
    };
    export.set(file, times).unwrap();
    let (uid, gid) = W::owner();
    let both = SetAttributes {
        mode: Some(0o2755),
        uid: Some(uid),
        gid: Some(gid),
        ..SetAttributes::default()
    };
    export.set(file, both).unwrap();
    let found = export.store().attributes(file).unwrap();
    assert_eq!((found.mode, found.size), (0o2755, 2));
    assert_eq!((found.uid, found.gid), (uid, gid));
    assert_eq!((found.atime, found.mtime), (time(-5), time(77)));
}

/// Directories and numbers without a node have no bytes.
pub(crate) fn only_files_have_bytes<W: World>() {
    let mut export = Export::<W>::new();
    let directory = export.directory(Ino::ROOT, "d");
    assert_eq!(export.store().read(directory, 0, 1), Err(Errno::ISDIR));
    assert_eq!(export.write(directory, 0, b"x"), Err(Errno::ISDIR));
    assert_eq!(export.truncate(directory, 0), Err(Errno::ISDIR));
    let file = export.file(Ino::ROOT, "f");
    assert_eq!(export.store().target(file), Err(Errno::INVAL));
    let link = NewNode::Symlink { target: "f".into() };
    let link = export.try_create((Ino::ROOT, "l"), link).unwrap();
    assert_eq!(export.truncate(link, 0), Err(Errno::INVAL));
    let unknown = export.ino();
    assert_eq!(export.store().attributes(unknown), Err(Errno::STALE));
    assert_eq!(export.store().read(unknown, 0, 1), Err(Errno::STALE));
    assert_eq!(export.write(unknown, 0, b"x"), Err(Errno::STALE));
}

/// Extended attributes are set, listed, replaced and removed.
pub(crate) fn extended_attributes_are_kept<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let set = |text: &'static str, value: &'static str| Record::SetXattr {
        node: handle(file),
        name: text.into(),
        value: value.into(),
    };
    match export.one(set("user.a", "1")) {
        // Not every file system has them.
        Err(Errno::OPNOTSUPP) => return,
        result => result.unwrap(),
    }
    export.one(set("user.b", "2")).unwrap();
    export.one(set("user.a", "")).unwrap();
    export.world.crash(0);
    assert_eq!(export.store().xattr(file, b"user.a"), Ok(Bytes::new()));
    let names = export.store().xattrs(file).unwrap();
    let mut own: Vec<_> = names.into_iter().filter(|text| text.starts_with(b"user.")).collect();
    own.sort();
    assert_eq!(own, ["user.a", "user.b"]);
    let remove = Record::RemoveXattr { node: handle(file), name: "user.a".into() };
    export.one(remove.clone()).unwrap();
    assert_eq!(export.one(remove), Err(Errno::NODATA));
    assert_eq!(export.store().xattr(file, b"user.a"), Err(Errno::NODATA));
}
