//! The layers of every package match `layers.txt`, and no files import each other in a circle.
//!
//! `APUS_WRITE_LAYERS=1 cargo test -p apus-architecture --test layers` rewrites the table after a
//! module was added or moved. The diff shows the changed directions: review it as code.

use apus_architecture::imports::Modules;
use apus_architecture::layers::Layers;
use apus_architecture::packages::packages;
use apus_architecture::repository::workspace;
use std::path::Path;
use std::{env, fs};

/// The comment at the top of the table.
const HEAD: &str = "\
# The modules of each folder, the lowest layer first: a module imports only modules that are listed before it.
# `module <- imports` names all that a module of the root may import. The rules are in src/layers.rs.
";

#[test]
fn modules_import_only_lower_modules() {
    let root = workspace();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("layers.txt");
    let layers = Layers::parse(&fs::read_to_string(&file).unwrap_or_default());
    let paths: Vec<String> = packages(&root).into_iter().map(|package| package.path).collect();
    if env::var_os("APUS_WRITE_LAYERS").is_some() {
        let updated = layers.updated(&root, &paths);
        let updated = updated.unwrap_or_else(|circles| panic!("\n{}", circles.join("\n")));
        fs::write(&file, format!("{HEAD}{}", updated.text())).unwrap();
        return;
    }
    let wrong: Vec<String> = paths.iter().flat_map(|path| layers.violations(&root, path)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn imports_are_found() {
    let modules = Modules::read(&workspace().join("transport/apus/src"));
    let imports: usize = modules.names().map(|module| modules.imports_of(module).len()).sum();
    assert!(imports > 200, "imports are not found: {imports}");
}
