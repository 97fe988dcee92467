//! STORE-4: a number names one node.

use apus_fs_core::Store;
use apus_fs_core::wire::{Ino, NewNode, Record};

use crate::export::{Export, handle, name, time};
use crate::world::World;

/// STORE-4: ranges of numbers are disjoint, ascending, below 2^63, and behind a crash also.
pub(crate) fn reserved_numbers_are_never_reserved_again<W: World>() {
    let mut world = W::new();
    let mut end = 1 << 20;
    for round in 0..20_u64 {
        let count = 1 + round * 37;
        let first = world.store().reserve_inos(count).unwrap();
        assert!(first >= end, "{first} was handed out before");
        end = first + count;
        assert!(end < 1 << 63);
        if round % 3 == 0 {
            world.crash(0);
        }
    }
}

/// STORE-4: a number that a node or an orphan has is refused for another one.
pub(crate) fn a_number_names_one_node<W: World>() {
    let mut export = Export::<W>::new();
    let live = export.file(Ino::ROOT, "live");
    let orphan = export.file(Ino::ROOT, "orphan");
    export.unlink(Ino::ROOT, "orphan", orphan).unwrap();
    for ino in [live, orphan, Ino::ROOT] {
        let (uid, gid) = W::owner();
        let create = Record::Create {
            parent: Some((handle(Ino::ROOT), name("again"))),
            ino,
            node: NewNode::File,
            mode: 0o600,
            uid,
            gid,
            time: time(1),
        };
        assert!(export.one(create).is_err());
        assert_eq!(export.find(Ino::ROOT, "again"), None);
        assert!(export.store().attributes(ino).is_ok());
    }
}

/// STORE-4: nodes keep their numbers when the store crashes and when their names change.
pub(crate) fn numbers_survive_crashes<W: World>() {
    let mut export = Export::<W>::new();
    let directory = export.directory(Ino::ROOT, "d");
    let files: Vec<_> = (0..20).map(|index| export.file(directory, &format!("f{index}"))).collect();
    for (index, file) in files.iter().enumerate() {
        export.write(*file, 0, &[index as u8]).unwrap();
    }
    export.rename((Ino::ROOT, "d"), (Ino::ROOT, "e"), directory, None).unwrap();
    export.rename((directory, "f3"), (Ino::ROOT, "f3"), files[3], None).unwrap();
    for _ in 0..2 {
        export.world.crash(0);
        for (index, file) in files.iter().enumerate() {
            assert_eq!(export.contents(*file), [index as u8]);
            let parent = if index == 3 { Ino::ROOT } else { directory };
            assert_eq!(export.find(parent, &format!("f{index}")), Some(*file));
        }
        assert_eq!(export.find(Ino::ROOT, "e"), Some(directory));
    }
}
