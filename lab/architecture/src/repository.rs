//! The checkout that tests about the whole repository read.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folders without text of the project.
const SKIPPED: [&str; 5] = ["target", ".git", "corpus", "captures", "node_modules"];

/// Returns the root of the checkout, or the folder that `APUS_WORKSPACE` names.
#[must_use]
pub fn workspace() -> PathBuf {
    env::var_os("APUS_WORKSPACE")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), PathBuf::from)
}

/// Returns the files below `root` with one of the name endings: path relative to `root`, and text.
///
/// # Panics
///
/// A folder or a file cannot be read.
#[must_use]
pub fn files(root: &Path, endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the checkout can be read") {
            let path = entry.expect("the checkout can be read").path();
            let name =
                path.file_name().expect("the checkout can be read").to_string_lossy().into_owned();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let inside = path
                    .strip_prefix(root)
                    .expect("the checkout can be read")
                    .to_string_lossy()
                    .into_owned();
                found.push((inside, fs::read_to_string(&path).expect("the checkout can be read")));
            }
        }
    }
    found.sort();
    found
}
