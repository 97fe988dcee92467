//! Checks of directories that are consistent, and of two that are not the same.

use apus_files::check::{CheckSettings, run};

fn settings(mounts: &[&tempfile::TempDir]) -> CheckSettings {
    let mounts = mounts.iter().map(|mount| mount.path().to_owned()).collect();
    CheckSettings { mounts, workers: 2, operations: 300, seed: 1, atomic_reads: false }
}

/// A local directory under two paths passes all checks.
#[test]
fn a_local_directory_is_consistent() {
    let directory = tempfile::tempdir().unwrap();
    let report = run(&settings(&[&directory, &directory]), |_| {}).unwrap();
    assert_eq!((report.violations, report.undecided), (vec![], 0));
    assert!(report.operations > 900, "{}", report.operations);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Two independent directories are detected: the check can fail.
#[test]
fn directories_that_are_not_the_same_are_found_out() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The second path contains the directory, but not the files that the check creates: the first
    // open fails.
    let error = run(&settings(&[&one, &other]), |_| {}).unwrap_err();
    assert_eq!(error.operation, "open");
}
