//! The packages of the workspace, by wing, with their dependencies on each other.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The wings: first-level folders with packages, from the lowest to the highest.
pub const WINGS: [&str; 6] = ["transport", "rpc", "languages", "files", "command", "lab"];

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// Path within the repository, such as `transport/proto`.
    pub path: String,
    /// Packages of the repository that it depends on, by path, development aside.
    pub dependencies: Vec<String>,
    /// Packages of the repository that its tests, examples and benchmarks depend on, by path.
    pub dev_dependencies: Vec<String>,
}

impl Package {
    /// Returns the first-level folder of the package.
    ///
    /// # Panics
    ///
    /// Never: a path has a first component.
    #[must_use]
    pub fn wing(&self) -> &str {
        self.path.split('/').next().expect("a path has a first part")
    }

    /// Reads a manifest.
    fn read(root: &Path, path: &str) -> Self {
        let file = root.join(path).join("Cargo.toml");
        let text = fs::read_to_string(&file).expect("a manifest can be read");
        let manifest: toml::Table = text.parse().expect("a manifest is TOML");
        let of = |tables: &[&str]| {
            let tables = tables.iter().filter_map(|name| manifest.get(*name)?.as_table());
            let mut paths: Vec<String> = tables
                .flat_map(toml::Table::values)
                .filter_map(|dependency| dependency.get("path")?.as_str())
                .map(|relative| normal(&Path::new(path).join(relative)))
                .filter(|dependency| dependency != path)
                .collect();
            paths.sort();
            paths
        };
        Self {
            path: path.to_owned(),
            dependencies: of(&["dependencies", "build-dependencies"]),
            dev_dependencies: of(&["dev-dependencies"]),
        }
    }
}

/// A path without `..`, as text.
fn normal(path: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.to_str().expect("paths of the repository are text").to_owned()
}

/// Returns the packages in the wings of the repository at `root`, in the order of their paths.
///
/// # Panics
///
/// A wing or a manifest cannot be read.
#[must_use]
pub fn packages(root: &Path) -> Vec<Package> {
    let mut paths = Vec::new();
    for wing in WINGS {
        for entry in fs::read_dir(root.join(wing)).expect("a wing can be read") {
            let folder = entry.expect("an entry").path();
            // A folder without a manifest is left over from a build or a branch switch. A manifest
            // with a separate workspace, such as the comparison's, does not belong to this
            // workspace.
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
            if manifest.contains("[package]") && !manifest.contains("[workspace]") {
                let inside = folder.strip_prefix(root).expect("a folder of the repository");
                paths.push(normal(inside));
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Package::read(root, path)).collect()
}
