//! Layers of `apus-local`: imports between its folders go downward, and no files import each other
//! in a circle.
//!
//! Reads `use crate::…` and `use super::…` in the sources. Files that exist only for tests and
//! models may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

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
const EXEMPT: [&str; 3] = ["lib", "model", "ring/tests"];

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
    for (file, imports) in graph() {
        let unit = unit_of(&file);
        let Some(may) = allowed.get(unit) else { panic!("{unit} is not in the table") };
        for import in imports.iter().map(|import| unit_of(import)).filter(|it| *it != unit) {
            assert!(may.contains(&import), "{file} imports {import}, which {unit} may not import");
            unused.retain(|(from, to)| from != unit || *to != import);
        }
    }
    assert!(unused.is_empty(), "allowed and not needed: {unused:?}");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut graph = graph();
    // Removes files without imports until none is left.
    while !graph.is_empty() {
        let leaves: Vec<_> =
            graph.iter().filter(|(_, to)| to.is_empty()).map(|(file, _)| file.clone()).collect();
        assert!(!leaves.is_empty(), "a circle among {graph:#?}");
        for leaf in leaves {
            graph.remove(&leaf);
            graph.values_mut().for_each(|imports| {
                imports.remove(&leaf);
            });
        }
    }
}

/// Returns the folder of a file, or its name at the root.
fn unit_of(file: &str) -> &str {
    file.split('/').next().unwrap()
}

/// Returns the files that each file imports, as paths below `src` without extension.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = BTreeMap::new();
    read_folder(&root, "", &mut sources);
    assert!(sources.len() > 20, "the sources were not found in {}", root.display());
    sources
        .iter()
        .filter(|(file, _)| !EXEMPT.contains(&file.as_str()))
        .map(|(file, text)| {
            let imports = paths(text).into_iter().filter_map(|path| resolve(file, &path, &sources));
            (file.clone(), imports.filter(|it| it != file).collect())
        })
        .collect()
}

fn read_folder(folder: &Path, prefix: &str, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.is_dir() {
            read_folder(&path, &format!("{prefix}{name}/"), sources);
        } else {
            sources.insert(format!("{prefix}{name}"), fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the paths that `text` imports, without the unit tests at its end. Groups of names follow
/// the last module of a path, so the text before a brace is enough.
fn paths(text: &str) -> Vec<String> {
    let text = text.split("\n#[cfg(test)]\n").next().unwrap();
    let text = text.split("\n#[cfg(all(test").next().unwrap();
    text.lines()
        .filter_map(|line| line.split_once("use "))
        .filter(|(before, _)| before.is_empty() || *before == "pub(crate) ")
        .map(|(_, path)| path.trim_end_matches(';').to_owned())
        .collect()
}

/// Returns the file that defines the first item of `path`, which `file` imports; `None` if it is of
/// another crate.
fn resolve(file: &str, path: &str, sources: &BTreeMap<String, String>) -> Option<String> {
    let folder = file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let is_root = file.ends_with("/mod");
    let (mut at, segments) = match path.split_once("::")? {
        ("crate", rest) => (String::new(), rest),
        ("super", rest) if !is_root => (folder, rest),
        // A folder's own modules are imported by their names.
        (child, _) if is_root && sources.contains_key(&format!("{folder}{child}")) => {
            (folder, path)
        }
        _ => return None,
    };
    for segment in segments.split("::") {
        let next = format!("{at}{segment}");
        if sources.contains_key(&next) {
            return Some(next);
        }
        if !sources.keys().any(|file| file.starts_with(&format!("{next}/"))) {
            break;
        }
        at = format!("{next}/");
    }
    let root = format!("{at}mod");
    assert!(sources.contains_key(&root), "{file} imports {path}, which is in no file");
    Some(root)
}
