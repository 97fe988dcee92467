//! Programs as they are installed, unchanged for this file system.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{World, can_mount};

/// Returns whether a program is installed, and prints a line if it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Runs a program in a directory and returns its output.
#[track_caller]
fn run<S: AsRef<OsStr>>(
    place: &Path,
    program: &str,
    arguments: impl IntoIterator<Item = S>,
) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(place)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Files of many lengths in some directories, with links and modes.
fn make_tree(root: &Path, files: usize) {
    for index in 0..files {
        let directory = root.join(format!("directory-{}", index % 17));
        fs::create_dir_all(&directory).unwrap();
        let length = (index * index * 7) % 40_000;
        let contents: Vec<u8> = (0..length).map(|at| (at * index) as u8).collect();
        fs::write(directory.join(format!("file-{index}")), contents).unwrap();
        if index % 50 == 0 {
            let target = format!("file-{index}");
            std::os::unix::fs::symlink(target, directory.join(format!("link-{index}"))).unwrap();
        }
    }
}

#[track_caller]
fn assert_alike(one: &Path, other: &Path) {
    run(one, "diff", ["-r", "--no-dereference", ".", other.to_str().unwrap()]);
}

#[test]
fn tar_unpacks_a_thousand_files() {
    if !can_mount() || !has("tar") || !has("diff") {
        return;
    }
    let world = World::new();
    let original = world.place("original");
    make_tree(&original, 1_000);
    let archive = world.place("archives").join("tree.tar");
    run(&original, "tar", ["-cf", archive.to_str().unwrap(), "."]);
    let server = world.serve(None);
    let (_one, here) = world.mount(&server.ready, "here");
    let (_other, there) = world.mount(&server.ready, "there");
    run(&here, "tar", ["-xf", archive.to_str().unwrap()]);
    assert_alike(&original, &here);
    assert_alike(&original, &there);
    run(&there, "rm", ["-r", "directory-0", "directory-1"]);
    assert!(!here.join("directory-0").exists());
    assert_eq!(fs::read_dir(&here).unwrap().count(), 15);
}

#[test]
fn git_keeps_a_repository() {
    if !can_mount() || !has("git") {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (_one, here) = world.mount(&server.ready, "here");
    let (_other, there) = world.mount(&server.ready, "there");
    make_tree(&here, 200);
    let git = |place: &Path, arguments: &str| {
        let settings = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "safe.directory=*"];
        run(place, "git", settings.into_iter().chain(arguments.split(' ')))
    };
    git(&here, "init --quiet");
    git(&here, "add --all");
    git(&here, "commit --quiet --message first");
    assert_eq!(git(&here, "status --short"), "");
    fs::write(there.join("directory-3/file-3"), "changed on the other mount").unwrap();
    assert_eq!(git(&here, "status --short"), " M directory-3/file-3\n");
    git(&there, "commit --all --quiet --message second");
    git(&here, "gc --quiet");
    git(&there, "fsck --strict");
    assert_eq!(git(&there, "log --format=%s"), "second\nfirst\n");
    assert_eq!(git(&here, "status --short"), "");
}

#[test]
fn sqlite_keeps_a_database_in_both_modes() {
    if !can_mount() || !has("sqlite3") {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (_one, here) = world.mount(&server.ready, "here");
    let (_other, there) = world.mount(&server.ready, "there");
    for mode in ["wal", "delete"] {
        let file = format!("{mode}.db");
        let sql = |place: &Path, text: &str| {
            run(place, "sqlite3", ["-cmd", ".timeout 60000", file.as_str(), text])
        };
        sql(&here, &format!("pragma journal_mode={mode}; create table t(a integer, b text);"));
        let rows: String =
            (0..300).map(|row| format!("insert into t values({row},'{row}');")).collect();
        sql(&here, &format!("begin; {rows} commit;"));
        assert_eq!(sql(&here, "select count(*), sum(a) from t;"), "300|44850\n");
        if mode == "delete" {
            // A write-ahead log needs memory that the processes share, which two hosts have not.
            sql(&there, "insert into t values(1000, 'there');");
            assert_eq!(sql(&here, "select count(*), sum(a) from t;"), "301|45850\n");
        }
        assert_eq!(sql(&here, "pragma integrity_check;"), "ok\n");
    }
}

#[test]
fn rsync_copies_a_tree_and_finds_nothing_to_do_again() {
    if !can_mount() || !has("rsync") || !has("diff") {
        return;
    }
    let world = World::new();
    let original = world.place("original");
    make_tree(&original, 200);
    // rsync compares seconds, and assumes that a directory that has just changed already has its
    // target time.
    let old = ["-exec", "touch", "--date", "2020-02-02 02:02:02.02", "--no-dereference", "{}", "+"];
    run(&original, "find", [".", "-depth"].into_iter().chain(old));
    let server = world.serve(None);
    let (mount, place) = world.mount(&server.ready, "mount");
    let copy = |target: &Path| {
        let arguments = ["-a", "--itemize-changes", "./", target.to_str().unwrap()];
        run(&original, "rsync", arguments)
    };
    copy(&place);
    assert_alike(&original, &place);
    assert_eq!(copy(&place), "");
    // And the directory at the server is the same, with its times.
    assert!(mount.stop().success());
    assert_eq!(copy(&world.directory()), "");
}

#[test]
fn cargo_builds_a_crate() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (_mount, place) = world.mount(&server.ready, "mount");
    fs::create_dir(place.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(place.join("Cargo.toml"), manifest).unwrap();
    fs::write(place.join("src/main.rs"), "fn main() { println!(\"hello\"); }\n").unwrap();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let target = place.join("target");
    run(
        &place,
        &cargo,
        ["build", "--quiet", "--offline", "--target-dir", target.to_str().unwrap()],
    );
    assert_eq!(run(&place, target.join("debug/hello").to_str().unwrap(), [""; 0]), "hello\n");
}
