//! Layers of `apus-hostgroup`: imports go downward, and no files import each other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Units of the crate, and what each may import.
const ALLOWED: [(&str, &[&str]); 3] = [("sync", &[]), ("board", &["sync"]), ("host", &["sync"])];

#[test]
fn imports_follow_the_table() {
    // Compiled only for loom models.
    Modules::read().check(&ALLOWED, &["host::model"]);
}
