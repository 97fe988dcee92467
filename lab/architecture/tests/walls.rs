//! Walls between the wings, and the map of the packages.

use apus_architecture::packages::{Package, WINGS, packages};
use apus_architecture::repository::workspace;
use std::fs;

/// Permitted dependencies of each wing, in addition to itself. The wings that an application links
/// (transport, rpc, languages, files) do not depend on the lab or the command, and the command does
/// not depend on the lab.
const WALLS: [(&str, &[&str]); 6] = [
    ("transport", &[]),
    ("rpc", &["transport"]),
    ("languages", &["transport", "rpc"]),
    ("files", &["transport"]),
    ("command", &["transport", "rpc", "files"]),
    ("lab", &["transport", "rpc", "languages", "files", "command"]),
];

/// Dependencies of `package` that the walls forbid.
fn beyond_the_walls<'a>(package: &'a Package, dependencies: &'a [String]) -> Vec<&'a str> {
    let (_, allowed) = WALLS.iter().find(|(wing, _)| *wing == package.wing()).unwrap();
    let wing = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let is_allowed =
        |path: &str| wing(path) == package.wing() || allowed.contains(&wing(path).as_str());
    dependencies.iter().map(String::as_str).filter(|path| !is_allowed(path)).collect()
}

#[test]
fn wings_depend_only_on_the_wings_below_them() {
    let mut wrong = Vec::new();
    let packages = packages(&workspace());
    for package in &packages {
        let all = [&package.dependencies, &package.dev_dependencies];
        for dependency in all.into_iter().flat_map(|all| beyond_the_walls(package, all)) {
            wrong.push(format!("{} depends on {dependency}", package.path));
        }
    }
    assert!(packages.len() > 20, "packages are not found: {packages:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_dependency_beyond_a_wall_is_found() {
    let package = |path: &str| Package {
        path: path.to_owned(),
        dependencies: vec!["transport/wire".to_owned(), "lab/sim".to_owned()],
        dev_dependencies: Vec::new(),
    };
    let [high, low] = ["lab/bench", "files/core"].map(package);
    assert_eq!(beyond_the_walls(&high, &high.dependencies), [""; 0]);
    assert_eq!(beyond_the_walls(&low, &low.dependencies), ["lab/sim"]);
}

#[test]
fn the_map_names_every_package_and_no_other() {
    let root = workspace();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for package in packages(&root) {
        let row = format!("`{}`", package.path);
        assert!(page.contains(&row), "ARCHITECTURE.md does not name {row}");
    }
    for wing in WINGS {
        let name = format!("`{wing}/");
        for (at, _) in page.match_indices(&name) {
            let path = page[at + 1..].split('`').next().unwrap_or_default();
            let is_pattern = path.contains(['<', '*', '…']);
            assert!(is_pattern || root.join(path).exists(), "ARCHITECTURE.md: there is no {path}");
        }
    }
}
