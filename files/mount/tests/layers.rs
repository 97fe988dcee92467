//! Layers of `apus-fs`: imports go downward only, and no files import each other in a circle.

#[path = "../../../transport/apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Modules, and what each may import. Serving and mounting know nothing of each other, and trust nothing of processes.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("bulk", &[]),
    ("clock", &[]),
    ("mailbox", &[]),
    ("metrics", &["mailbox"]),
    ("poll", &[]),
    ("trust", &[]),
    ("stations", &[]),
    ("time_slice", &[]),
    ("status", &[]),
    ("server_status", &[]),
    (
        "serve",
        &[
            "bulk",
            "clock",
            "mailbox",
            "metrics",
            "poll",
            "stations",
            "time_slice",
            "trust",
            "status",
            "",
        ],
    ),
    (
        "mount",
        &["bulk", "clock", "mailbox", "metrics", "poll", "stations", "time_slice", "status", ""],
    ),
];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
