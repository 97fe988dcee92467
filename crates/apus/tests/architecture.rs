//! Does ARCHITECTURE.md name every crate and module, and nothing that is not there?
//!
//! In a packaged crate there is no ARCHITECTURE.md: the test says so and passes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders whose modules are listed one by one, besides each crate's root.
const LISTED: [&str; 1] = ["apus/src/engine"];

/// The modules that a file declares, `mod tests` aside.
fn declared(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let name = |line: &str| {
        let (before, name) = line.strip_suffix(';')?.rsplit_once(' ')?;
        (before == "mod" || before.ends_with(" mod")).then(|| name.to_owned())
    };
    text.lines().filter(|line| !line.starts_with("//")).filter_map(name).collect()
}

/// The modules of a crate, those of listed folders with the folder's name before them.
fn modules(krate: &Path) -> BTreeSet<String> {
    let roots = ["lib.rs", "main.rs"].map(|root| krate.join("src").join(root));
    let mut names: BTreeSet<String> =
        roots.iter().filter(|root| root.exists()).flat_map(|root| declared(root)).collect();
    for folder in LISTED.iter().filter(|folder| krate.ends_with(folder.split('/').next().unwrap()))
    {
        let folder = krate.parent().unwrap().join(folder);
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        names.extend(declared(&folder.join("mod.rs")).into_iter().map(|m| format!("{name}/{m}")));
    }
    names
}

/// The names in the first column of a section's table.
fn named(section: &str) -> BTreeSet<String> {
    let first = |line: &str| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned());
    let cells = section.lines().filter_map(first);
    cells.flat_map(|cell| cell.split("`, `").map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn architecture_names_every_crate_and_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(page) = fs::read_to_string(root.join("ARCHITECTURE.md")) else {
        eprintln!("SKIPPED: no ARCHITECTURE.md; this is not a checkout of the workspace");
        return;
    };
    assert!(page.lines().count() <= 120, "ARCHITECTURE.md is one page: {}", page.lines().count());
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let krate = entry.unwrap().path();
        let name = krate.file_name().unwrap().to_string_lossy().into_owned();
        if !krate.join("Cargo.toml").exists() {
            continue; // What a build or a switch of branches has left behind.
        }
        let Some((_, section)) = page.split_once(&format!("\n### {name}: ")) else {
            wrong.push(format!("{name} has no section"));
            continue;
        };
        let section = section.split("\n##").next().unwrap();
        let (present, named) = (modules(&krate), named(section));
        assert!(!present.is_empty(), "{name} declares no modules as this test expects them");
        for module in present.difference(&named) {
            wrong.push(format!("{name}: `{module}` is not named"));
        }
        for module in named.difference(&present) {
            wrong.push(format!("{name}: `{module}` is named and does not exist"));
        }
    }
    assert!(wrong.is_empty(), "ARCHITECTURE.md and the sources differ:\n{}", wrong.join("\n"));
}
