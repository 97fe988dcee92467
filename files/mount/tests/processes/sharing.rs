//! Consistency between several mounts of one directory.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::thread;

use crate::harness::{World, can_mount};

#[test]
fn what_one_mount_writes_the_other_reads() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (one, here) = world.mount(&server.ready, "one");
    let (other, there) = world.mount(&server.ready, "other");
    let long: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    fs::create_dir(here.join("tree")).unwrap();
    fs::write(here.join("tree/long"), &long).unwrap();
    fs::write(here.join("short"), "hello").unwrap();
    symlink("short", here.join("link")).unwrap();
    assert!(fs::read(there.join("tree/long")).unwrap() == long);
    assert_eq!(fs::read_to_string(there.join("link")).unwrap(), "hello");
    fs::rename(there.join("short"), there.join("tree/moved")).unwrap();
    assert!(!here.join("short").exists());
    assert_eq!(fs::read(here.join("tree/moved")).unwrap(), b"hello");
    fs::remove_dir_all(here.join("tree")).unwrap();
    let left: Vec<_> =
        fs::read_dir(&there).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["link"]);
    assert!(one.stop().success() && other.stop().success() && server.stop().success());
}

/// The kernel's caches are dropped before another mount's change is visible anywhere.
#[test]
fn open_files_see_the_changes_of_the_other_mount() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (_one, here) = world.mount(&server.ready, "one");
    let (_other, there) = world.mount(&server.ready, "other");
    fs::write(here.join("file"), "0000").unwrap();
    let mine = OpenOptions::new().read(true).write(true).open(here.join("file")).unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(there.join("file")).unwrap();
    for round in 1..=50 {
        let text = format!("{round:04}");
        let (writer, reader) = if round % 2 == 0 { (&mine, &theirs) } else { (&theirs, &mine) };
        writer.write_all_at(text.as_bytes(), 0).unwrap();
        let mut found = [0; 4];
        reader.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, text.as_bytes());
        assert_eq!(reader.metadata().unwrap().size(), 4);
    }
}

/// FSRUN-5: each mount holds pages locked for the write that waits while its lease is recalled.
#[test]
fn appends_of_two_mounts_do_not_overwrite_each_other() {
    const LINES: usize = 40;
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (_one, here) = world.mount(&server.ready, "one");
    let (_other, there) = world.mount(&server.ready, "other");
    File::create(here.join("log")).unwrap();
    let append = |path: std::path::PathBuf, name: &'static str| {
        thread::spawn(move || {
            let mut log = OpenOptions::new().append(true).open(path).unwrap();
            for line in 0..LINES {
                // One write for each line: `writeln!` makes several.
                log.write_all(
                    format!(
                        "{name} {line}
"
                    )
                    .as_bytes(),
                )
                .unwrap();
            }
        })
    };
    let writers = [append(here.join("log"), "one"), append(there.join("log"), "two")];
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let log = fs::read_to_string(here.join("log")).unwrap();
    for name in ["one", "two"] {
        let lines: Vec<&str> = log.lines().filter(|line| line.starts_with(name)).collect();
        let expected: Vec<String> = (0..LINES).map(|line| format!("{name} {line}")).collect();
        assert_eq!(lines, expected);
    }
}

/// FSRUN-5, with pages that are locked for reads.
#[test]
fn reads_and_writes_of_two_mounts_end() {
    const ROUNDS: u8 = 40;
    const LENGTH: usize = 100_000;
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (_one, here) = world.mount(&server.ready, "one");
    let (_other, there) = world.mount(&server.ready, "other");
    fs::write(here.join("file"), [0; LENGTH]).unwrap();
    let writer = OpenOptions::new().write(true).open(here.join("file")).unwrap();
    let writer = thread::spawn(move || {
        (1..=ROUNDS).for_each(|round| writer.write_all_at(&[round; LENGTH], 0).unwrap());
    });
    let readers = [here.join("file"), there.join("file")].map(|path| {
        thread::spawn(move || {
            let mut last = 0;
            while last < ROUNDS {
                let now = fs::read(&path).unwrap()[LENGTH - 1];
                assert!(now >= last, "{}: {now} after {last}", path.display());
                last = now;
            }
        })
    });
    writer.join().unwrap();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}
