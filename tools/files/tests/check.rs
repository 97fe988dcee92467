//! Checks of directories that are consistent, and of two that are not the same.

use apus_files::check::{CheckSettings, run};

fn settings(mounts: &[&tempfile::TempDir]) -> CheckSettings {
    let mounts = mounts.iter().map(|mount| mount.path().to_owned()).collect();
    CheckSettings { mounts, workers: 2, operations: 300, seed: 1 }
}

/// A local directory under two paths is what it claims to be.
#[test]
fn a_local_directory_is_consistent() {
    let directory = tempfile::tempdir().unwrap();
    let report = run(&settings(&[&directory, &directory]), |_| {}).unwrap();
    // ext4 and tmpfs read without the lock that writes take: a read beside a write may have a part of it, which one run in a
    // hundred shows. Names, appends and locks have no such exception.
    let torn = "operations on a file are linearisable: register";
    let violations: Vec<_> =
        report.violations.into_iter().filter(|violation| !violation.starts_with(torn)).collect();
    assert_eq!((violations, report.undecided), (vec![], 0));
    assert!(report.operations > 900, "{}", report.operations);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Two directories that are kept alike by nothing are found out: the check can fail.
#[test]
fn directories_that_are_not_the_same_are_found_out() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The second one has the directory, and copies of what the check creates cannot be made: the first open fails.
    let error = run(&settings(&[&one, &other]), |_| {}).unwrap_err();
    assert_eq!(error.operation, "open");
}
