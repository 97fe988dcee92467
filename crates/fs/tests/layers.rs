//! Layers of `apus-fs`: imports go downward only, and no files import each other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Modules, and what each may import. Serving and mounting know nothing of each other, and trust nothing of processes.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("clock", &[]),
    ("mailbox", &[]),
    ("metrics", &["mailbox"]),
    ("poll", &[]),
    ("trust", &[]),
    ("status", &[]),
    ("server_status", &[]),
    ("serve", &["clock", "mailbox", "metrics", "poll", "trust", "status", ""]),
    ("mount", &["clock", "mailbox", "metrics", "poll", "status", ""]),
];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
