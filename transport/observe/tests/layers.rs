//! Layers of `apus-observe`: imports between its folders go downward, and no files import each
//! other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Units of the crate, and what each may import.
const ALLOWED: [(&str, &[&str]); 8] = [
    ("read_time", &[]),
    ("engine", &[]),
    ("sealing", &[]),
    ("endpoint", &["engine", "read_time"]),
    ("snapshot", &["endpoint", "engine", "read_time", "sealing"]),
    ("introspection", &["snapshot"]),
    ("prometheus", &["introspection", "snapshot"]),
    ("metrics_bridge", &["endpoint", "snapshot"]),
];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
