//! Layers of `apus-fs`: imports go downward only, and no files import each other in a circle.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Modules, and what each may import. Serving and mounting know nothing of each other, and trust nothing of processes.
const ALLOWED: [(&str, &[&str]); 8] = [
    ("clock", &[]),
    ("mailbox", &[]),
    ("poll", &[]),
    ("trust", &[]),
    ("status", &[]),
    ("server_status", &[]),
    ("serve", &["clock", "mailbox", "poll", "trust", "status", "Report"]),
    ("mount", &["clock", "mailbox", "poll", "status", "Report"]),
];

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
                import.is_empty() || import == unit(file) || may.contains(&import.as_str()),
                "{file} imports {import}"
            );
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_eq!(Modules::read().circle(), None);
}
