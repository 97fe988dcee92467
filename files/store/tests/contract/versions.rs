//! STORE-6: equal versions mean equal nodes.

use apus_fs_core::Store;
use apus_fs_core::wire::{Ino, NewNode, SetAttributes, Version};

use crate::export::{Export, name};
use crate::world::World;

fn version<W: World>(export: &mut Export<W>, node: Ino) -> Version {
    export.store().attributes(node).expect("it is a node").version
}

/// STORE-6: each change of contents, attributes and names is seen in the version.
pub(crate) fn every_change_changes_the_version<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let mut seen = vec![version(&mut export, file)];
    for index in 0..50 {
        match index % 3 {
            0 => export.write(file, 0, &[index]).unwrap(),
            1 => export.truncate(file, index.into()).unwrap(),
            _ => {
                let mode = Some(0o600 + u16::from(index % 8));
                export.set(file, SetAttributes { mode, ..SetAttributes::default() }).unwrap();
            }
        }
        let new = version(&mut export, file);
        let last = seen.last().expect("the first one");
        assert!(new.change > last.change, "change {index}");
        if index % 3 < 2 {
            assert!(new.data > last.data, "change {index}");
        }
        seen.push(new);
    }
    let before = version(&mut export, Ino::ROOT);
    export.unlink(Ino::ROOT, "f", file).unwrap();
    assert!(version(&mut export, Ino::ROOT).change > before.change);
}

/// A cached copy stays valid until a change, also after a crash.
pub(crate) fn reads_keep_the_version<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    export.write(file, 0, b"x").unwrap();
    let before = (version(&mut export, file), version(&mut export, Ino::ROOT));
    export.store().read(file, 0, 10).unwrap();
    export.store().list(Ino::ROOT, None, 10).unwrap();
    export.store().look_up(Ino::ROOT, &name("f")).unwrap();
    assert_eq!((version(&mut export, file), version(&mut export, Ino::ROOT)), before);
    export.world.crash(0);
    assert_eq!((version(&mut export, file), version(&mut export, Ino::ROOT)), before);
}

/// STORE-6: a change after a crash has another version than any change before it, lost changes
/// included.
pub(crate) fn lost_changes_leave_no_version_behind<W: World>() {
    let mut export = Export::<W>::new();
    let file = export.file(Ino::ROOT, "f");
    let mut seen = vec![version(&mut export, file)];
    for round in 0..4 {
        let (lost, _) =
            export.create_record(Some((Ino::ROOT, &format!("x{round}"))), NewNode::File);
        let batch = export.batch(vec![lost], b"");
        export.store().append(batch);
        export.world.crash(round % 2);
        export.write(file, 0, &[round as u8]).unwrap();
        let new = version(&mut export, file);
        assert!(!seen.contains(&new), "version {new:?} returned");
        seen.push(new);
    }
}
