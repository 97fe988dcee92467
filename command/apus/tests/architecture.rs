//! The shape of the command: imports go downward only, commands never import from each other, and
//! files form no circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `src` from the lowest layer to the highest. A module imports only from the layers
/// below its own.
const LAYERS: [&[&str]; 5] = [
    &["activity", "address", "forward", "path", "processes"],
    &["sealing", "senders", "tracing"],
    &["call", "decode", "doctor", "fs", "keys", "metrics", "serve", "top", "trace", "tune"],
    &["command_line"],
    &["main"],
];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The Rust files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the path of the module in a file: `["trace", "dump"]` for `trace/dump.rs`, `["trace"]`
/// for `trace/mod.rs`.
fn module(file: &Path) -> Vec<String> {
    let relative = file.strip_prefix(src()).unwrap().with_extension("");
    let mut names: Vec<String> =
        relative.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    names.pop_if(|last| last == "mod");
    names
}

/// Returns the code of a file without comments and unit tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let (code, _) = text.split_once("#[cfg(test)]\nmod ").unwrap_or((&text, ""));
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the first names after each `prefix` in the code, such as `output` and `signals` in
/// `crate::{output, signals::on_first}`.
fn names_behind(code: &str, prefix: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let first = |text: &str| text.trim_start().split(|c| !is_name(c)).next().unwrap().to_owned();
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(is_name) {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(members(group).into_iter().map(first)),
            None => {
                names.insert(first(rest));
            }
        }
    }
    names.remove("");
    names
}

/// Returns the members of a group of imports, up to its closing brace.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[start..at]);
                return found;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    panic!("a group of imports without an end: {group}");
}

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("`{module}` is in no layer"))
}

#[test]
fn every_module_is_in_one_layer() {
    let found: BTreeSet<String> =
        files(&src()).iter().map(|file| module(file)[0].clone()).collect();
    let listed: Vec<&str> = LAYERS.concat();
    let unique: BTreeSet<String> = listed.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(unique.len(), listed.len(), "a module is listed twice");
    assert_eq!(found, unique);
}

#[test]
fn modules_import_from_lower_layers_only() {
    for file in files(&src()) {
        let own = &module(&file)[0];
        for other in names_behind(&code(&file), "crate::") {
            let is_below = other == *own || layer(&other) < layer(own);
            assert!(is_below, "{} imports from `{other}`, which is not below it", file.display());
        }
    }
}

/// A file that declares a module depends on it, so an import from the parent is a circle, too.
#[test]
fn files_form_no_circles() {
    let all = files(&src());
    let modules: BTreeSet<Vec<String>> = all.iter().map(|file| module(file)).collect();
    let mut edges: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for file in all.iter().filter(|file| !file.ends_with("main.rs")) {
        let (own, code) = (module(file), code(file));
        let parent = own[..own.len() - 1].to_vec();
        let declared =
            names_behind(&code, "mod ").into_iter().map(|name| [&own[..], &[name]].concat());
        let mut targets: BTreeSet<_> = declared.filter(|target| modules.contains(target)).collect();
        let top = vec![own[0].clone()];
        let within = format!("crate::{}::", own[0]);
        for (prefix, base) in [("super::", &parent), ("self::", &own), (&within[..], &top)] {
            for name in names_behind(&code, prefix) {
                let child = [&base[..], &[name]].concat();
                targets.insert(if modules.contains(&child) { child } else { base.clone() });
            }
        }
        targets.remove(&own);
        edges.insert(own, targets);
    }
    // Repeatedly remove files without edges to remaining files; the remaining files are on a circle
    // or lead to one.
    while let Some(leaf) =
        edges.iter().find(|(_, targets)| !targets.iter().any(|it| edges.contains_key(it)))
    {
        let leaf = leaf.0.clone();
        edges.remove(&leaf);
    }
    assert!(edges.is_empty(), "circles among these files: {edges:#?}");
}

#[test]
fn imports_are_recognised() {
    let code =
        "use crate::failure::Failure;\nuse crate::{output, signals::{on_first, x}};\nmycrate::no;";
    let found: Vec<String> = names_behind(code, "crate::").into_iter().collect();
    assert_eq!(found, ["failure", "output", "signals"]);
}
