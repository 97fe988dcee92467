//! Random histories that crash before any of their changes, also while an earlier crash is
//! repaired.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::catch_unwind;
use std::path::Path;

use crate::history::History;
use crate::records::{Numbers, Random, set_up};
use crate::support::{open, options, temporary};
use apus_fs_store::{Crashed, DirectoryStore, FailPoint};

/// Opens a store that may crash while it opens.
fn try_open(directory: &Path, fail_point: FailPoint, replays_all: bool) -> Option<DirectoryStore> {
    let opened = catch_unwind(|| DirectoryStore::open(directory, options(fail_point, replays_all)));
    match opened {
        Ok(store) => Some(store.expect("it opens")),
        Err(cause) => {
            assert!(cause.is::<Crashed>(), "{:?}", cause.downcast_ref::<String>());
            None
        }
    }
}

/// Seeds of the histories: `APUS_FS_SEEDS` of them, from `APUS_FS_SEED` on.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("APUS_FS_SEED").unwrap_or(0);
    first..first + number("APUS_FS_SEEDS").unwrap_or(6)
}

/// STORE-1, STORE-2, STORE-4: whatever change a crash precedes, the store opens with a prefix that
/// has all that was confirmed.
#[test]
fn after_a_crash_at_any_change_there_is_a_prefix() {
    for seed in seeds() {
        let history = History::make(seed);
        history.show();
        let group = 1 + (seed % 3) as usize;
        for changes in 0.. {
            let what = format!("seed {seed}, crash before change {changes}");
            let directory = temporary();
            set_up(directory.path());
            let mut numbers = Numbers(Vec::new());
            // Opening a directory for the first time changes no file in it.
            let mut store =
                try_open(directory.path(), FailPoint::after(changes), true).expect("empty");
            numbers.0 = Numbers::of(&mut store).0;
            let result = history.run(&mut store, &numbers, group);
            let (confirmed, sent) = result.err().unwrap_or((8, 8));
            drop(store);
            let mut random = Random(seed ^ (changes << 32));
            let replays_all = random.below(2) == 0;
            let mut store = loop {
                let limit = 1 << random.below(8);
                let fail_point = match random.below(3) {
                    0 => FailPoint::default(),
                    _ => FailPoint::after(random.below(limit) as u64),
                };
                if let Some(store) = try_open(directory.path(), fail_point, replays_all) {
                    break store;
                }
            };
            let applied = history.check(&mut store, &numbers, confirmed, sent, &what);
            // The client sends unconfirmed batches again.
            drop(store);
            let mut store = open(directory.path());
            for batch in &history.batches[applied..] {
                history.append_and_commit(&mut store, &numbers, std::slice::from_ref(batch));
            }
            history.check(&mut store, &numbers, 8, 8, &format!("{what}, resumed"));
            store.close().unwrap();
            history.check(&mut open(directory.path()), &numbers, 8, 8, &format!("{what}, closed"));
            if result.is_ok() {
                break;
            }
        }
    }
}

/// Removes, cuts and overwrites files and directories that the log creates: a crash of the machine
/// may lose their contents, and themselves, as long as no checkpoint was made.
fn lose(directory: &Path, kept: &BTreeSet<u64>, random: &mut Random) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.is_dir() && entry.file_name() != ".apus-fs" {
            lose(&path, kept, random);
        }
        if kept.contains(&metadata.ino()) || entry.file_name() == ".apus-fs" {
            continue;
        }
        match random.below(4) {
            0 if metadata.is_dir() => {
                // It may have nodes that existed before.
                let _ = fs::remove_dir(&path);
            }
            0 => fs::remove_file(&path).unwrap(),
            1 if metadata.is_file() => fs::write(&path, "garbage").unwrap(),
            2 if metadata.is_file() => fs::write(&path, "").unwrap(),
            _ => {}
        }
    }
}

fn inodes(directory: &Path, all: &mut BTreeSet<u64>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        all.insert(entry.metadata().unwrap().ino());
        if entry.file_type().unwrap().is_dir() {
            inodes(&entry.path(), all);
        }
    }
}

/// STORE-1, STORE-2: changes that the machine had not written yet are written again from the log.
#[test]
fn after_a_crash_of_the_machine_there_is_a_prefix() {
    for seed in seeds() {
        let history = History::make(seed);
        history.show();
        let mut random = Random(seed);
        for round in 0..20 {
            let what = format!("seed {seed}, round {round}");
            let directory = temporary();
            set_up(directory.path());
            let mut kept = BTreeSet::new();
            inodes(directory.path(), &mut kept);
            let changes = random.below(100) as u64;
            let mut store =
                try_open(directory.path(), FailPoint::after(changes), true).expect("empty");
            let numbers = Numbers::of(&mut store);
            let result = history.run(&mut store, &numbers, 2);
            let (confirmed, sent) = result.err().unwrap_or((8, 8));
            drop(store);
            lose(directory.path(), &kept, &mut random);
            lose(&directory.path().join(".apus-fs/orphans"), &kept, &mut random);
            let replays_all = true;
            // Crashes of the process while the store opens.
            let mut fail_point = FailPoint::after(random.below(30) as u64);
            let mut store = loop {
                if let Some(store) = try_open(directory.path(), fail_point, replays_all) {
                    break store;
                }
                fail_point = FailPoint::default();
            };
            history.check(&mut store, &numbers, confirmed, sent, &what);
        }
    }
}
