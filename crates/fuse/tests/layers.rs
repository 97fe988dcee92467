//! Layers of `apus-fuse`: imports between its folders go downward, and no files import each other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Folders, and what each may import. The codec knows no IO, and mounting no sessions.
const ALLOWED: [(&str, &[&str]); 3] = [("codec", &[]), ("mount", &[]), ("session", &["codec"])];

#[test]
fn imports_follow_the_table() {
    let modules = Modules::read();
    let unit = |file: &str| file.split("::").next().unwrap_or_default().to_owned();
    for file in modules.names().filter(|file| !file.is_empty()) {
        let Some((_, may)) = ALLOWED.iter().find(|(name, _)| *name == unit(file)) else {
            panic!("{file} is in no layer");
        };
        for import in modules.uses_of(file).iter().map(|import| unit(import)) {
            assert!(
                import == unit(file) || may.contains(&import.as_str()),
                "{file} imports {import}"
            );
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_eq!(Modules::read().circle(), None);
}
