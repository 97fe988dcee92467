//! The checkout that tests about the whole repository read.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folders without text of the project.
const SKIPPED: [&str; 5] = ["target", ".git", "corpus", "captures", "node_modules"];

/// Returns the root of the checkout, or the one that `APUS_WORKSPACE` names. A packaged crate has no `docs` beside it:
/// then there is nothing to check.
pub(crate) fn workspace() -> Option<PathBuf> {
    let root = env::var_os("APUS_WORKSPACE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from);
    if root.join("docs/spec").is_dir() && root.join("docs/reference").is_dir() {
        return Some(root);
    }
    eprintln!("SKIPPED: no docs beside the crates; this is not a checkout of the workspace");
    None
}

/// Returns the files below `root` whose names have one of the endings: path within `root`, and text.
pub(crate) fn files(root: &Path, endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let inside = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.push((inside, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
