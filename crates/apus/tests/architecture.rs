//! The shape of the workspace: product and tools apart, no crate too large, every crate on the map.
//!
//! In a packaged crate there is no workspace: the tests say so and pass.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of Rust that a crate may have in `src`.
const LARGEST: usize = 15_000;

/// The workspace, if this is a checkout of it.
fn workspace() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("ARCHITECTURE.md").exists() {
        return Some(root);
    }
    eprintln!("SKIPPED: no ARCHITECTURE.md; this is not a checkout of the workspace");
    None
}

/// The crates in `folder` of the workspace: `crates` or `tools`.
fn members(root: &Path, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    // A folder without a manifest is what a build or a switch of branches has left behind.
    let mut members: Vec<_> = entries.filter(|path| path.join("Cargo.toml").exists()).collect();
    members.sort();
    assert!(members.len() > 3, "{folder} is not where this test expects it: {members:?}");
    members
}

/// Lines of the Rust files below `folder`.
fn lines(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                lines(&path)
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                fs::read_to_string(&path).unwrap().lines().count()
            } else {
                0
            }
        })
        .sum()
}

#[test]
fn nothing_that_an_application_links_depends_on_a_tool() {
    let Some(root) = workspace() else { return };
    for member in members(&root, "crates") {
        let manifest = fs::read_to_string(member.join("Cargo.toml")).unwrap();
        assert!(!manifest.contains("tools/"), "{} depends on a tool", member.display());
    }
}

#[test]
fn no_crate_is_too_large() {
    let Some(root) = workspace() else { return };
    for member in [members(&root, "crates"), members(&root, "tools")].concat() {
        let lines = lines(&member.join("src"));
        assert!(lines > 0, "{} has no source", member.display());
        assert!(lines <= LARGEST, "{} has {lines} lines of source", member.display());
    }
}

#[test]
fn the_map_names_every_crate_and_no_other() {
    let Some(root) = workspace() else { return };
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for folder in ["crates", "tools"] {
        let members = members(&root, folder);
        let names = members.iter().map(|member| member.file_name().unwrap().to_str().unwrap());
        let names: Vec<&str> = names.collect();
        for name in &names {
            let path = format!("{folder}/{name}");
            assert!(page.contains(&path), "ARCHITECTURE.md does not name {path}");
        }
        for (_, rest) in page
            .match_indices(&format!("{folder}/"))
            .map(|(at, found)| page.split_at(at + found.len()))
        {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            let name = &rest[..end.unwrap_or(rest.len())];
            assert!(name.is_empty() || names.contains(&name), "there is no {folder}/{name}");
        }
    }
}
