//! The functions that `docs/tracing-with-perf.md` names exist in the source.

use apus_architecture::repository::workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder of each crate.
const CRATES: [(&str, &str); 3] = [
    ("apus", "transport/apus"),
    ("apus_proto", "transport/proto"),
    ("apus_local", "transport/local"),
];

/// Returns the file of a module, if it exists.
fn file_of(crate_folder: &Path, modules: &[&str]) -> Option<PathBuf> {
    let place = modules.iter().fold(crate_folder.join("src"), |place, name| place.join(name));
    [place.with_extension("rs"), place.join("mod.rs")].into_iter().find(|file| file.exists())
}

/// Returns the problem with a path such as `apus_proto::rx::admit::refuse`, if there is one.
fn problem(root: &Path, path: &str) -> Option<String> {
    let mut names: Vec<&str> = path.split("::").collect();
    let function = names.pop()?;
    let krate = names.remove(0);
    let Some((_, folder)) = CRATES.iter().find(|(name, _)| *name == krate) else {
        return Some(format!("{path}: there is no crate {krate}"));
    };
    let modules: Vec<&str> = names
        .into_iter()
        .filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        .collect();
    let Some(file) = file_of(&root.join(folder), &modules) else {
        return Some(format!("{path}: there is no such module"));
    };
    let text = fs::read_to_string(&file).unwrap();
    let is_defined =
        text.contains(&format!("fn {function}(")) || text.contains(&format!("fn {function}<"));
    (!is_defined).then(|| format!("{path}: {} has no such function", file.display()))
}

#[test]
fn functions_to_trace_exist() {
    let root = workspace();
    let page = fs::read_to_string(root.join("docs/tracing-with-perf.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `apus")?.split('`').next());
    let paths: Vec<String> = rows.map(|rest| format!("apus{rest}")).collect();
    assert!(paths.len() > 10, "the table is not found: {paths:?}");
    let problems: Vec<String> = paths.iter().filter_map(|path| problem(&root, path)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(problem(&root, "apus_proto::rx::no_such_function").is_some());
    assert!(problem(&root, "apus_proto::no_such_module::receive").is_some());
}
