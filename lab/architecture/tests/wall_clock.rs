//! The wall clock is read for dates only, so that stepping it affects no call.
//! `apus-lab lab soak --clock-steps` steps it; this test needs no root.

use apus_architecture::packages::packages;
use apus_architecture::repository::workspace;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Expressions that read the wall clock.
const READINGS: [&str; 3] = ["SystemTime::now(", "UnixTime::now(", "ClockId::Realtime"];

/// Files that read it, with the use of the date.
const READERS: [(&str, &str); 8] = [
    ("transport/apus/src/metrics.rs", "when counters were read"),
    ("transport/driver/src/pcap/log.rs", "when a packet was captured"),
    ("files/store/src/directory/copy.rs", "when a file was copied"),
    ("files/mount/src/clock.rs", "when a file was changed"),
    ("files/mount/src/mount/lost_changes.rs", "when changes were lost"),
    ("transport/observe/src/introspection/requests.rs", "when counters were read"),
    ("transport/seal/src/tls/verifier.rs", "whether a certificate is valid"),
    ("transport/trace/src/clock.rs", "when a trace was recorded"),
];

/// Collects the Rust files below `folder`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns whether code reads the wall clock outside its unit tests.
fn reads(text: &str) -> bool {
    let (code, _) = text.split_once("#[cfg(test)]\nmod ").unwrap_or((text, ""));
    let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.into_iter().any(|line| READINGS.iter().any(|reading| line.contains(reading)))
}

#[test]
fn the_wall_clock_is_read_for_dates_only() {
    let root = workspace();
    let linked = ["transport", "rpc", "languages", "files"];
    let mut sources = Vec::new();
    for package in packages(&root) {
        // The simulator of the file service is not linked.
        if linked.contains(&package.wing()) && package.path != "files/sim" {
            files(&root.join(&package.path).join("src"), &mut sources);
        }
    }
    let mut left: BTreeMap<_, _> = READERS.into_iter().collect();
    for file in sources.iter().filter(|file| reads(&fs::read_to_string(file).unwrap())) {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap();
        let listed = left.remove(name).is_some();
        assert!(listed, "{name} reads the wall clock: measure time with the monotonic clock");
    }
    assert!(left.is_empty(), "they read it no longer: {left:?}");
}

#[test]
fn a_reading_is_found_in_code_and_not_in_comments() {
    assert!(reads("let now = SystemTime::now();"));
    assert!(!reads("// SystemTime::now() would jump\nlet now = Instant::now();"));
    assert!(!reads("#[cfg(test)]\nmod tests {\n let now = SystemTime::now();\n}"));
}
