//! Counters of a server and of a mount, as `apus metrics` reads them.

use std::collections::BTreeMap;
use std::fs;

use apus::introspection;
use apus::snapshot::ApplicationFamily;

use crate::harness::{Process, World, can_mount};

/// Everything that a process counts, by name.
fn counted(process: &Process) -> BTreeMap<String, u64> {
    let snapshot = introspection::Process::new(process.id()).snapshot().unwrap();
    snapshot.application.iter().flat_map(ApplicationFamily::named).collect()
}

#[test]
fn operations_calls_and_commits_are_counted() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (mount, place) = world.mount(&server.ready, "mount");
    let before = counted(&mount);
    let path = place.join("file");
    fs::write(&path, "hello").unwrap();
    fs::File::open(&path).unwrap().sync_all().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    let now = counted(&mount);
    let change = |name: &str| now[name] - before[name];
    assert_eq!(change("fs_mount_operations.create"), 1);
    assert_eq!(change("fs_mount_operations.write"), 1);
    assert!(change("fs_mount_calls.batch") >= 1 && change("fs_mount_batches") >= 1);
    assert!(change("fs_mount_cache_hits") >= 2, "the file is created and written in the cache");
    assert_eq!(now["fs_mount_waiting_batches"], 0, "it was synchronised");
    assert!(now["fs_mount_leases.exclusive"] >= 1);
    assert_eq!(now["fs_mount_server_responds"], 1);

    let served = counted(&server);
    assert!(served["fs_server_requests.batch"] >= 1 && served["fs_server_batches"] >= 1);
    assert!(served["fs_server_commits"] >= 1);
    assert!(served["fs_server_log_syncs"] >= served["fs_server_commits"]);
    assert!(served["fs_server_log_bytes"] > 0);
    assert_eq!(served["fs_server_sessions"], 1);
    assert_eq!(served["fs_server_leases.exclusive"], now["fs_mount_leases.exclusive"]);

    // Another mount's change has the lease recalled.
    let (other, elsewhere) = world.mount(&server.ready, "other");
    fs::write(elsewhere.join("file"), "world").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"world");
    assert!(counted(&server)["fs_server_recalls"] >= 1);
    assert!(counted(&mount)["fs_mount_recalls"] >= 1);
    assert!(other.stop().success() && mount.stop().success() && server.stop().success());
}
