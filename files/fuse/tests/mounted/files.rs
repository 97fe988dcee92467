//! File operations of ordinary programs.

use crate::world::World;
use apus_fuse::{MountOptions, SessionSettings, Unmount, UnmountError};
use rustix::fs::{FallocateFlags, FlockOperation, RenameFlags, XattrFlags};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

#[test]
fn what_is_written_is_read() {
    let Some(world) = World::new() else { return };
    let path = world.path("file");
    let data: Vec<u8> = (0..3_000_000_u32).map(|n| ((n * 7) >> 5) as u8).collect();
    fs::write(&path, &data).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), data.len() as u64);
    assert_eq!(fs::read(&path).unwrap(), data, "from the page cache");
    world.session.notifier().send(&everything(fs::metadata(&path).unwrap().ino())).unwrap();
    assert_eq!(fs::read(&path).unwrap(), data, "from the file system");

    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"end").unwrap();
    let file = File::open(&path).unwrap();
    let mut end = [0; 3];
    file.read_exact_at(&mut end, data.len() as u64).unwrap();
    assert_eq!(&end, b"end");
    File::create(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"", "O_TRUNC");
    assert_eq!(world.session.malformed(), 0);
    let agreed = *world.session.negotiated().unwrap();
    assert_eq!(agreed.max_write, 1 << 20);
    assert!(agreed.flags.difference(SessionSettings::FLAGS).is_empty());
}

fn everything(node: u64) -> apus_fuse::codec::Notification<'static> {
    apus_fuse::codec::Notification::InvalInode { node, offset: 0, length: 0 }
}

#[test]
fn a_directory_of_ten_thousand_names_is_read_whole() {
    let Some(world) = World::new() else { return };
    fs::create_dir(world.path("many")).unwrap();
    let expected: BTreeSet<String> = (0..10_000).map(|n| format!("name-{n}")).collect();
    for name in &expected {
        File::create(world.path("many").join(name)).unwrap();
    }
    for _ in 0..2 {
        let names = fs::read_dir(world.path("many")).unwrap();
        let names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(names.len(), expected.len());
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), expected);
    }
    for entry in fs::read_dir(world.path("many")).unwrap() {
        assert!(entry.unwrap().metadata().unwrap().is_file());
    }
    fs::remove_dir_all(world.path("many")).unwrap();
    assert!(fs::metadata(world.path("many")).is_err());
}

#[test]
fn names_are_renamed_exchanged_and_removed() {
    let Some(world) = World::new() else { return };
    let (a, b) = (world.path("a"), world.path("b"));
    fs::write(&a, "a").unwrap();
    fs::write(&b, "b").unwrap();
    let rename = |flags| rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(apus_fuse::Errno::EXIST));
    rename(RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(&a).unwrap(), "b");
    fs::rename(&a, &b).unwrap();
    assert_eq!(fs::read_to_string(&b).unwrap(), "b");
    assert!(fs::metadata(&a).is_err());

    fs::hard_link(&b, &a).unwrap();
    assert_eq!(fs::metadata(&a).unwrap().nlink(), 2);
    let mut open = File::open(&a).unwrap();
    fs::remove_file(&a).unwrap();
    fs::remove_file(&b).unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "b", "an open file without names");

    fs::create_dir(&a).unwrap();
    fs::write(a.join("x"), "").unwrap();
    assert_eq!(fs::remove_dir(&a).unwrap_err().raw_os_error(), Some(39), "ENOTEMPTY");
    let long = "n".repeat(255);
    fs::write(world.path(&long), "").unwrap();
    assert!(fs::metadata(world.path(&long)).unwrap().is_file());
}

#[test]
fn links_attributes_and_xattrs_persist() {
    let Some(world) = World::new() else { return };
    let (file, link) = (world.path("file"), world.path("link"));
    fs::write(&file, "text").unwrap();
    symlink("file", &link).unwrap();
    assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("file"));
    assert_eq!(fs::read_to_string(&link).unwrap(), "text");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode(), 0o100_640);
    let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    File::open(&file).unwrap().set_modified(time).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), time);

    let value = [7; 5000];
    rustix::fs::setxattr(&file, "user.name", &value, XattrFlags::CREATE).unwrap();
    let again = rustix::fs::setxattr(&file, "user.name", b"", XattrFlags::CREATE);
    assert_eq!(again, Err(apus_fuse::Errno::EXIST));
    let mut room = vec![0; 10_000];
    assert_eq!(rustix::fs::getxattr(&file, "user.name", &mut room[..]), Ok(5000));
    assert_eq!(room[..5000], value);
    assert_eq!(
        rustix::fs::getxattr(&file, "user.name", &mut room[..9]),
        Err(apus_fuse::Errno::RANGE)
    );
    assert_eq!(rustix::fs::listxattr(&file, &mut room[..]), Ok(10));
    rustix::fs::removexattr(&file, "user.name").unwrap();
    assert_eq!(
        rustix::fs::getxattr(&file, "user.name", &mut room[..]),
        Err(apus_fuse::Errno::NODATA)
    );

    let open = OpenOptions::new().write(true).open(&file).unwrap();
    rustix::fs::fallocate(&open, FallocateFlags::empty(), 0, 100_000).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), 100_000);
    assert!(rustix::fs::statvfs(&file).unwrap().f_bfree > 0);
}

#[test]
fn locks_exclude_and_a_waiter_gets_its_lock() {
    let Some(world) = World::new() else { return };
    let path = world.path("file");
    let (one, two) = (File::create(&path).unwrap(), File::open(&path).unwrap());
    rustix::fs::flock(&one, FlockOperation::LockExclusive).unwrap();
    assert_eq!(
        rustix::fs::flock(&two, FlockOperation::NonBlockingLockShared),
        Err(apus_fuse::Errno::AGAIN)
    );
    let waiter = std::thread::spawn(move || {
        rustix::fs::flock(&two, FlockOperation::LockShared).unwrap();
    });
    world.until(|session, _| !session.unanswered().is_empty());
    rustix::fs::flock(&one, FlockOperation::Unlock).unwrap();
    waiter.join().unwrap();
    // Locks of fcntl(2) belong to the process: this one does not conflict with itself, and closing
    // releases them.
    rustix::fs::fcntl_lock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
    rustix::fs::fcntl_lock(&one, FlockOperation::Unlock).unwrap();
}

#[test]
fn a_busy_mount_is_unmounted_only_lazily() {
    let Some(world) = World::new() else { return };
    let path = world.mount().path().to_owned();
    let file = File::create(world.path("file")).unwrap();
    let busy = apus_fuse::unmount(&path, Unmount::IfUnused).unwrap_err();
    assert!(matches!(busy, UnmountError::Busy { .. }), "{busy}");
    apus_fuse::unmount(&path, Unmount::Lazy).unwrap();
    file.write_all_at(b"still here", 0).unwrap();
    let gone = apus_fuse::unmount(&path, Unmount::IfUnused).unwrap_err();
    assert!(matches!(gone, UnmountError::NotMounted { .. }), "{gone}");
    drop(file); // The connection ends with the last file; the drop of `world` verifies that.
}

#[test]
fn unmounting_ends_the_session_and_leaves_the_directory_empty() {
    let Some(world) = World::new() else { return };
    let path = world.mount().path().to_owned();
    fs::write(world.path("file"), "").unwrap();
    let session = std::sync::Arc::clone(&world.session);
    assert!(mounts().contains(path.to_str().unwrap()));
    assert_eq!(world.unmount(Unmount::IfUnused), apus_fuse::ReadError::Unmounted);
    assert!(!mounts().contains(path.to_str().unwrap()));
    assert_eq!(session.unanswered(), []);
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").unwrap()
}

#[test]
fn a_mount_over_the_mount_survives_its_drop() {
    let Some(mut below) = World::new() else { return };
    let path = below.mount().path().to_owned();
    let Ok((above, device)) = apus_fuse::Mount::new(&path, &MountOptions::default()) else {
        panic!("a second mount is as possible as the first")
    };
    drop(below.take_mount());
    let line = format!(" {} ", path.to_str().unwrap());
    assert_eq!(mounts().matches(&line).count(), 2, "MOUNT-1");
    drop((above, device));
    apus_fuse::unmount(&path, Unmount::Lazy).unwrap();
}

#[test]
fn a_read_only_mount_refuses_writes() {
    let mut options = MountOptions::default();
    options.read_only = true;
    options.fs_name = "name of the source".to_owned();
    let Some(world) =
        World::with(&options, crate::server::MemoryServer::default(), SessionSettings::default())
    else {
        return;
    };
    let error = fs::write(world.path("file"), "").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(30), "EROFS");
    let mounts = mounts();
    let line = mounts.lines().find(|line| line.contains(world.mount().path().to_str().unwrap()));
    let line = line.unwrap();
    assert!(line.starts_with("name\\040of\\040the\\040source "), "{line}");
    assert!(line.contains(" fuse.apus ro,"), "{line}");
}
