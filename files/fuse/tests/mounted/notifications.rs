//! The kernel's caches, and their invalidation by notifications.

use crate::nodes::Content;
use crate::world::{World, uncached};
use apus_fuse::codec::{Notification, ROOT};
use apus_fuse::{MountOptions, NotifyError, SessionSettings};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Changes a file behind the kernel's back.
fn overwrite(world: &World, node: u64, text: &str) {
    world.server.lock().unwrap().nodes.change(node, |node| {
        node.content = Content::File(text.into());
        node.attributes.size = text.len() as u64;
    });
}

#[test]
fn data_and_attributes_are_read_again_after_a_notification() {
    let Some(world) = World::new() else { return };
    let path = world.path("file");
    fs::write(&path, "old").unwrap();
    let node = fs::metadata(&path).unwrap().ino();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    overwrite(&world, node, "new");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old", "cached forever");
    let notifier = world.session.notifier();
    let thread = std::thread::spawn(move || {
        notifier.send(&Notification::InvalInode { node, offset: 0, length: 0 })
    });
    assert_eq!(thread.join().unwrap(), Ok(true));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    let unknown = Notification::InvalInode { node: 9999, offset: 0, length: 0 };
    assert_eq!(world.session.notifier().send(&unknown), Ok(false));
}

#[test]
fn names_are_looked_up_again_after_a_notification() {
    let Some(world) = World::new() else { return };
    let path = world.path("name");
    assert!(fs::metadata(&path).is_err());
    {
        let nodes = &mut world.server.lock().unwrap().nodes;
        let node = nodes.create(0o100_644, 0, 0, Content::File(Vec::new()));
        nodes.link(ROOT, b"name", node).unwrap();
    }
    assert!(fs::metadata(&path).is_err(), "absence is cached forever");
    let notifier = world.session.notifier();
    let inval = |expire_only| Notification::InvalEntry { parent: ROOT, name: b"name", expire_only };
    assert_eq!(notifier.send(&inval(false)), Ok(true));
    let node = fs::metadata(&path).unwrap().ino();

    let unlink = |world: &World| world.server.lock().unwrap().nodes.unlink(ROOT, b"name").unwrap();
    assert_eq!(unlink(&world), node);
    assert!(fs::metadata(&path).is_ok());
    match notifier.send(&Notification::IncEpoch) {
        Ok(_) => {}
        Err(NotifyError::Unsupported) => assert_eq!(notifier.send(&inval(true)), Ok(true)),
        Err(error) => panic!("{error}"),
    }
    assert!(fs::metadata(&path).is_err(), "after a new epoch");
}

#[test]
fn a_deletion_elsewhere_is_reported() {
    let Some(world) = World::new() else { return };
    let path = world.path("name");
    fs::write(&path, "").unwrap();
    let node = fs::metadata(&path).unwrap().ino();
    world.server.lock().unwrap().nodes.unlink(ROOT, b"name").unwrap();
    let notifier = world.session.notifier();
    let delete = Notification::Delete { parent: ROOT, child: node, name: b"name" };
    assert_eq!(notifier.send(&delete), Ok(true));
    assert!(fs::metadata(&path).is_err());
    let bad = Notification::Delete { parent: ROOT, child: node, name: b"a/b" };
    assert!(matches!(notifier.send(&bad), Err(NotifyError::Encode(_))), "FUSE-3");
}

#[test]
fn stored_data_is_read_without_a_request() {
    let Some(world) = World::new() else { return };
    let path = world.path("file");
    fs::write(&path, "old!").unwrap();
    let node = fs::metadata(&path).unwrap().ino();
    let notifier = world.session.notifier();
    let store = Notification::Store { node, offset: 0, data: b"new!" };
    assert_eq!(notifier.send(&store), Ok(true));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new!");
}

#[test]
fn without_timeouts_every_change_is_seen_at_once() {
    let settings = SessionSettings::default();
    let Some(world) = World::with(&MountOptions::default(), uncached(), settings) else { return };
    let path = world.path("file");
    fs::write(&path, "old").unwrap();
    let node = fs::metadata(&path).unwrap().ino();
    overwrite(&world, node, "longer");
    assert_eq!(fs::metadata(&path).unwrap().len(), 6);
}
