//! Files are written to a folder that already contains links and files of other users.

use apus_trace::recorder;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

/// The attack: another user has put a link under each predictable name: the name of the file, and
/// the name of the unfinished file, which earlier versions wrote.
#[test]
fn a_trace_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, file) = (folder.path().join("victim"), folder.path().join("trace.tt"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &file).unwrap();
    symlink(&victim, folder.path().join(format!("trace.tt.{}.part", std::process::id()))).unwrap();
    recorder::snapshot().save(&file).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let found = fs::symlink_metadata(&file).unwrap();
    assert!(found.is_file(), "the link was replaced");
    assert_eq!(found.mode() & 0o777, 0o600, "only its user reads the trace");
}
