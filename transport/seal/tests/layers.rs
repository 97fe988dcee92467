//! The layers of the crate: the imports that each module may have, and no circle of files.

#[path = "../../apus/tests/imports/mod.rs"]
mod imports;

use imports::Modules;

/// Modules, the lowest first, with the modules that they import.
const LAYERS: &[(&str, &[&str])] = &[
    ("number", &[]),
    ("window", &[]),
    ("cipher", &[]),
    ("failure", &[]),
    ("identity", &[]),
    ("counters", &["failure"]),
    ("negotiation", &["cipher", "failure", "identity"]),
    ("association", &["number", "window", "cipher"]),
    (
        "handshake",
        &["number", "cipher", "failure", "identity", "counters", "negotiation", "association"],
    ),
    ("stub", &["cipher", "failure", "identity", "negotiation"]),
    ("tls", &["cipher", "failure", "identity", "negotiation"]),
];

#[test]
fn modules_import_what_the_table_allows() {
    let sources = Modules::read();
    let mut wrong = Vec::new();
    for file in sources.names().filter(|file| !file.is_empty()) {
        let module = top(file);
        let Some(place) = LAYERS.iter().position(|(name, _)| *name == module) else {
            wrong.push(format!("{module} is in no layer"));
            continue;
        };
        for target in sources.uses_of(file) {
            let target = top(&target);
            let is_below = LAYERS[..place].iter().any(|(lower, _)| *lower == target);
            if target != module && !(is_below && LAYERS[place].1.contains(&target)) {
                wrong.push(format!("{file} imports {target}, which the table does not allow"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_circle_of_files() {
    let sources = Modules::read();
    let edges: usize = sources.names().map(|file| sources.uses_of(file).len()).sum();
    assert!(edges > 40, "imports are not found: {edges}");
    assert_eq!(sources.circle(), None);
}

/// The module of a file: the first part of its path.
fn top(file: &str) -> &str {
    file.split("::").next().unwrap_or(file)
}
