//! `apus-lab fs check` on directories of this machine.

use std::fs;

use crate::harness::{object, run, text};

/// A local directory keeps every promise to one thread, and is empty afterwards. With several
/// threads ext4 does not: a read may see half of a concurrent write.
#[test]
fn a_local_directory_passes_and_is_left_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let one = ["--workers", "1", "--operations", "200", "--json"];
    let found = run(["fs", "check", path].into_iter().chain(one));
    assert!(found.status.success(), "{}", text(&found.stderr));
    let object = object(&found);
    assert_eq!((&object["mounts"], &object["violations"]), (&1.into(), &0.into()));
    assert!(object["operations"].as_u64().unwrap() >= 400, "{object}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Two unrelated directories cannot be checked: the directory of the check exists in only one of
/// them.
#[test]
fn directories_that_are_not_the_same_fail() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths = [&one, &other].map(|it| it.path().to_str().unwrap().to_owned());
    let found = run(["fs", "check", &paths[0], &paths[1], "--operations", "10"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(text(&found.stderr).contains("open "), "{}", text(&found.stderr));
    assert_eq!(fs::read_dir(one.path()).unwrap().count(), 0);
}

#[test]
fn a_path_that_is_no_directory_is_refused_by_name() {
    let found = run(["fs", "check", "/no/such/mount"]);
    assert_eq!(found.status.code(), Some(2));
    let said = text(&found.stderr);
    assert!(said.contains("'MOUNT'") && said.contains("/no/such/mount"), "{said}");
}
