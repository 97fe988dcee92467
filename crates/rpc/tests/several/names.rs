//! Names of servers.

use apus_rpc::names;
use std::time::Duration;

#[tokio::test]
async fn a_file_is_read_again_and_a_malformed_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("servers");
    let missing = names::file(&path, Duration::from_millis(1)).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    std::fs::write(&path, "10.0.0.7:4000\n").unwrap();
    let mut servers = names::file(&path, Duration::from_millis(1)).unwrap();
    assert_eq!(servers.addresses().len(), 1);
    std::fs::write(&path, "10.0.0.7:4000\n10.0.0.8:4000\n").unwrap();
    // The first change may be the file while it is empty.
    while servers.addresses().len() != 2 {
        assert!(servers.changed().await);
    }
    std::fs::write(&path, "not an address\n").unwrap();
    std::fs::write(folder.path().join("new"), "10.0.0.9:4000\n").unwrap();
    std::fs::rename(folder.path().join("new"), &path).unwrap();
    while servers.addresses() != ["10.0.0.9:4000".parse().unwrap()] {
        assert!(servers.changed().await);
    }
}
