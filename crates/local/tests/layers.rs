//! Layers of `apus-local`: imports between its folders go downward, and no files import each other
//! in a circle.
//!
//! Files that exist only for tests and models may import anything.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;
use std::collections::{BTreeMap, BTreeSet};

/// The units of the crate, and the units that each may import. A unit is a folder, or a file at the
/// root; each imports only units above it in this table.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("error", &[]),
    ("sync", &[]),
    ("lock", &["sync"]),
    ("memory", &["error", "sync"]),
    ("ring", &["error", "memory", "sync"]),
    ("socket", &["error"]),
    ("pair", &["error", "lock", "memory", "ring", "socket", "sync"]),
    ("config", &["memory", "pair", "socket"]),
    ("handshake", &["config", "error", "memory", "pair", "socket"]),
];
const ENDPOINT: (&str, &[&str]) =
    ("endpoint", &["config", "error", "handshake", "lock", "pair", "socket", "sync"]);

/// Files that are compiled only for tests and loom models, and the root, which re-exports.
const EXEMPT: [&str; 3] = ["", "model", "ring::tests"];

fn allowed() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    ALLOWED.into_iter().chain([ENDPOINT])
}

#[test]
fn the_table_has_no_upward_edge() {
    let mut below = BTreeSet::new();
    for (unit, imports) in allowed() {
        for import in imports {
            assert!(below.contains(import), "{unit} may import {import}, which is not below it");
        }
        below.insert(unit);
    }
}

#[test]
fn imports_follow_the_table() {
    let allowed: BTreeMap<_, _> = allowed().collect();
    let mut unused: BTreeSet<_> = allowed
        .iter()
        .flat_map(|(unit, imports)| imports.iter().map(|import| (unit.to_string(), *import)))
        .collect();
    let modules = Modules::read();
    for file in modules.names().filter(|file| !EXEMPT.contains(file)) {
        let unit = unit_of(file);
        let Some(may) = allowed.get(unit) else { panic!("{unit} is not in the table") };
        let imports = modules.uses_of(file);
        for import in imports.iter().map(|import| unit_of(import)).filter(|it| *it != unit) {
            assert!(may.contains(&import), "{file} imports {import}, which {unit} may not import");
            unused.retain(|(from, to)| from != unit || *to != import);
        }
    }
    assert!(unused.is_empty(), "allowed and not needed: {unused:?}");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_eq!(Modules::read().circle(), None);
}

/// Returns the folder of a file, or its name at the root.
fn unit_of(file: &str) -> &str {
    file.split("::").next().unwrap()
}
