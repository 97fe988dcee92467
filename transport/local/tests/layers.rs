//! Layers of `apus-local`: imports between its folders go downward, and no files import each other
//! in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Units of the crate, and what each may import.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("poll_balance", &[]),
    ("error", &[]),
    ("sync", &[]),
    ("lock", &["sync"]),
    ("memory", &["error", "sync"]),
    ("ring", &["error", "memory", "sync"]),
    ("socket", &["error"]),
    ("page", &["memory", "socket", "sync"]),
    ("pair", &["error", "lock", "memory", "ring", "socket", "sync"]),
    ("config", &["memory", "pair", "socket"]),
    ("handshake", &["config", "error", "memory", "pair", "socket"]),
    ("endpoint", &["config", "error", "handshake", "lock", "pair", "socket", "sync"]),
];

#[test]
fn imports_follow_the_table() {
    // Both are compiled only for tests and loom models.
    Modules::read().check(&ALLOWED, &["model", "ring::tests"]);
}
