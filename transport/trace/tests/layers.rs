//! Layers of `apus-trace`: imports go downward, and no files import each other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Files of the crate, and the files that each may import.
const ALLOWED: [(&str, &[&str]); 13] = [
    ("tsc", &[]),
    ("clock", &["tsc"]),
    ("sync", &[]),
    ("peers", &[]),
    ("freeze_reason", &[]),
    ("event", &[]),
    ("record", &["event", "peers"]),
    ("trace", &["clock", "event", "freeze_reason", "peers", "record"]),
    ("file", &["event", "record", "trace"]),
    ("ring", &["record", "sync"]),
    ("threads", &["clock", "event", "record", "ring", "trace"]),
    (
        "recorder",
        &["clock", "event", "file", "freeze_reason", "peers", "record", "threads", "trace"],
    ),
    ("auto_save", &["file", "freeze_reason", "recorder", "trace"]),
];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
