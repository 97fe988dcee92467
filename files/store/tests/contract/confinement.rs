//! STORE-5: no file outside the export is reached.

use apus_fs_core::Store;
use apus_fs_core::wire::{Errno, Ino, NewNode};
use bytes::Bytes;

use crate::export::{Export, name};
use crate::world::World;

/// STORE-5: a symbolic link is a node without names and bytes, wherever it points to.
pub(crate) fn links_are_not_followed<W: World>() {
    let mut export = Export::<W>::new();
    for (text, target) in [("root", "/"), ("above", ".."), ("passwd", "/etc/passwd")] {
        let link = NewNode::Symlink { target: target.into() };
        let link = export.try_create((Ino::ROOT, text), link).unwrap();
        assert_eq!(export.store().target(link), Ok(Bytes::from(target)));
        assert_eq!(export.store().look_up(link, &name("etc")), Err(Errno::NOTDIR));
        assert_eq!(export.store().list(link, None, 10), Err(Errno::NOTDIR));
        assert_eq!(export.store().read(link, 0, 10), Err(Errno::INVAL));
        assert_eq!(export.write(link, 0, b"x"), Err(Errno::INVAL));
        assert_eq!(export.try_create((link, "new"), NewNode::File), Err(Errno::NOTDIR));
    }
}
