//! The end of mounts, and failures to mount.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use apus_fs::mount::{MountFailure, MountSettings, Mounted};
use apus_fs_core::client::Lost;
use apus_fuse::Unmount;

use crate::harness::{World, can_mount, is_mounted};

/// FSRUN-4.
#[test]
fn a_mount_ends_with_all_changes_at_the_server_and_leaves_nothing() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    for name in ["stopped", "unmounted"] {
        let (mount, place) = world.mount(&server.ready, name);
        assert!(is_mounted(&place));
        for number in 0..100 {
            fs::write(place.join(format!("{name} {number}")), name).unwrap();
        }
        let ended = if name == "stopped" {
            mount.stop()
        } else {
            apus_fuse::unmount(&place, Unmount::IfUnused).unwrap();
            mount.wait()
        };
        assert!(ended.success(), "{ended}");
        assert!(!is_mounted(&place));
        for number in 0..100 {
            let path = world.directory().join(format!("{name} {number}"));
            assert_eq!(fs::read_to_string(path).unwrap(), name);
        }
    }
    assert!(server.stop().success());
}

#[test]
fn nothing_is_mounted_without_a_server() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let place = world.place("mount");
    // A socket that never responds.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut settings = MountSettings::new(silent.local_addr().unwrap(), place.clone());
    // Whichever time ends first.
    for (first_response, lost) in [(100, None), (60_000, Some(100))] {
        settings.first_response = Duration::from_millis(first_response);
        settings.lost = lost.map_or(Lost::Wait, |limit| Lost::Error(Duration::from_millis(limit)));
        let failure = Mounted::new(&settings, Box::new(|_| {})).map(drop).unwrap_err();
        assert!(matches!(failure, MountFailure::Silent { .. }), "{failure}");
        assert!(!is_mounted(&place));
    }
}

#[test]
fn a_mount_point_that_does_not_exist_is_named() {
    let settings = MountSettings::new("127.0.0.1:1".parse().unwrap(), "/does/not/exist".into());
    let failure = Mounted::new(&settings, Box::new(|_| {})).map(drop).unwrap_err();
    assert!(failure.to_string().contains("/does/not/exist"), "{failure}");
}
