//! Layers of `apus-fuse`: imports between its folders go downward, and no files import each other in a circle.

#[path = "../../../transport/apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Folders, and what each may import. The codec knows no IO, and mounting no sessions.
const ALLOWED: [(&str, &[&str]); 3] = [("codec", &[]), ("mount", &[]), ("session", &["codec"])];

#[test]
fn imports_follow_the_table() {
    Modules::read().check(&ALLOWED, &[]);
}
