//! The layers of each package: the table in `layers.txt`, and its comparison with the imports.
//!
//! - **LAYERS-1** Of two modules in one folder, at most one imports from the other: the module
//!   listed later.
//! - **LAYERS-2** No files import each other in a circle.
//! - **LAYERS-3** Each module with a file is listed.
//! - **LAYERS-4** A module with a row `unit <- a b` imports exactly `a` and `b` among its sibling
//!   modules.
//!
//! LAYERS-1 includes the descendants of the two modules. A parent file (`mod.rs`, `lib.rs`) may use
//! its child modules, or be used by them, but not both (LAYERS-2); a re-export does not count as
//! use.

use crate::imports::{Modules, crate_roots, join};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The modules of one folder, the lowest first. Modules with an explicit row also have their
/// imports.
type Rows = Vec<(String, Option<BTreeSet<String>>)>;

/// The layers of the crates of a repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Layers(BTreeMap<String, BTreeMap<String, Rows>>);

/// Imports within one folder: module, imported module, and an example of the import.
type Edges = BTreeMap<(String, String), String>;

impl Layers {
    /// Parses the table: crate paths at the start of lines; below each, indented, `folder: modules`
    /// in order, or one line `module <- imports` for each module of the root.
    ///
    /// # Panics
    ///
    /// A line has another form.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut layers = Self::default();
        let mut current = String::new();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let Some(row) = line.strip_prefix("    ") else {
                line.clone_into(&mut current);
                layers.0.entry(current.clone()).or_default();
                continue;
            };
            let folders = layers.0.entry(current.clone()).or_default();
            if let Some((unit, imports)) = row.split_once(" <-") {
                let imports = Some(words(imports).into_iter().collect());
                folders.entry(String::new()).or_default().push((unit.trim().to_owned(), imports));
            } else {
                let (folder, modules) = row.rsplit_once(": ").expect("a row is `folder: modules`");
                let rows = words(modules).into_iter().map(|module| (module, None)).collect();
                folders.insert(folder.trim_end_matches(':').trim().to_owned(), rows);
            }
        }
        layers
    }

    /// Returns the table as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (path, folders) in &self.0 {
            writeln!(text, "\n{path}").expect("writing to a string");
            for (folder, rows) in folders {
                let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
                if rows.iter().any(|(_, imports)| imports.is_some()) {
                    for (name, imports) in rows {
                        let imports = imports.iter().flatten().cloned().collect::<Vec<_>>();
                        let row = format!("    {name} <- {}", imports.join(" "));
                        writeln!(text, "{}", row.trim_end()).expect("writing to a string");
                    }
                } else {
                    writeln!(text, "    {folder}: {}", names.join(" "))
                        .expect("writing to a string");
                }
            }
        }
        text
    }

    /// Returns the violations in the sources of the package at `path`, one line each.
    #[must_use]
    pub fn violations(&self, root: &Path, path: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, modules) in crates(root, path) {
            let none = BTreeMap::new();
            let table = self.0.get(&name).unwrap_or(&none);
            let circles = modules.circles().into_iter();
            wrong.extend(circles.map(|import| format!("{name}: {import} in a circle (LAYERS-2)")));
            for (folder, children) in folders(&modules) {
                let edges = edges(&modules, &folder);
                let empty = Vec::new();
                let rows = table.get(&folder).unwrap_or(&empty);
                check_folder(&name, &folder, &children, rows, &edges, &mut wrong);
            }
            for folder in table.keys().filter(|folder| !folders(&modules).contains_key(*folder)) {
                wrong.push(format!("{name} has no folder {folder:?}"));
            }
        }
        wrong
    }

    /// Returns the layers of the packages at `paths` in their present order, with the fewest
    /// changes that the imports require.
    ///
    /// # Errors
    ///
    /// Modules of a folder that import each other in a circle, one line for each folder.
    pub fn updated(&self, root: &Path, paths: &[String]) -> Result<Self, Vec<String>> {
        let mut layers = Self::default();
        let mut wrong = Vec::new();
        for (name, modules) in paths.iter().flat_map(|path| crates(root, path)) {
            let table = self.0.get(&name);
            let mut updated = BTreeMap::new();
            for (folder, children) in folders(&modules) {
                let edges = edges(&modules, &folder);
                let rows = table.and_then(|table| table.get(&folder));
                let with_imports = rows.is_some_and(|rows| rows.iter().any(|row| row.1.is_some()));
                let place = |child: &str| {
                    let found = rows?.iter().position(|(name, _)| name == child);
                    found.or(Some(usize::MAX))
                };
                match sorted(&children, &edges, place) {
                    Ok(order) => {
                        let row = |module: String| {
                            let imports = edges.keys().filter(|(from, _)| *from == module);
                            let imports = imports.map(|(_, to)| to.clone()).collect();
                            (module, with_imports.then_some(imports))
                        };
                        updated.insert(folder, order.into_iter().map(row).collect());
                    }
                    Err(left) => {
                        let inside = edges
                            .iter()
                            .filter(|((from, to), _)| left.contains(from) && left.contains(to));
                        let imports: Vec<&str> =
                            inside.map(|(_, import)| import.as_str()).collect();
                        wrong.push(format!("{name} {folder:?}: {}", imports.join("; ")));
                    }
                }
            }
            layers.0.insert(name, updated);
        }
        if wrong.is_empty() { Ok(layers) } else { Err(wrong) }
    }
}

/// The crates of a package: name in the table, and modules.
fn crates(root: &Path, path: &str) -> Vec<(String, Modules)> {
    let src = root.join(path).join("src");
    if !src.is_dir() {
        return Vec::new();
    }
    let name = |folder: &Path| {
        let inside = folder.strip_prefix(&src).expect("a folder of src").display().to_string();
        if inside.is_empty() { path.to_owned() } else { format!("{path}/src/{inside}") }
    };
    crate_roots(&src).iter().map(|folder| (name(folder), Modules::read(folder))).collect()
}

/// The folders with two or more modules, and their modules.
fn folders(modules: &Modules) -> BTreeMap<String, BTreeSet<String>> {
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in modules.names().filter(|module| !module.is_empty()) {
        let parts: Vec<&str> = module.split("::").collect();
        for depth in 0..parts.len() {
            let folder = folders.entry(parts[..depth].join("::")).or_default();
            folder.insert(parts[depth].to_owned());
        }
    }
    folders.retain(|_, children| children.len() > 1);
    folders
}

/// The imports between the modules of a folder.
fn edges(modules: &Modules, folder: &str) -> Edges {
    let prefix = join(folder, "");
    let child = |module: &str| {
        let inside = module.strip_prefix(&prefix)?;
        inside.split("::").next().filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let mut edges = Edges::new();
    for module in modules.names() {
        let Some(from) = child(module) else { continue };
        for target in modules.uses_of(module) {
            if let Some(to) = child(&target).filter(|to| *to != from) {
                let import = || format!("{module} imports {target}");
                edges.entry((from.clone(), to)).or_insert_with(import);
            }
        }
    }
    edges
}

fn check_folder(
    name: &str,
    folder: &str,
    children: &BTreeSet<String>,
    rows: &Rows,
    edges: &Edges,
    wrong: &mut Vec<String>,
) {
    let place = |module: &str| rows.iter().position(|(name, _)| name == module);
    for child in children.iter().filter(|child| place(child).is_none()) {
        wrong.push(format!("{name}: {} is in no layer (LAYERS-3)", join(folder, child)));
    }
    for (row, _) in rows.iter().filter(|(row, _)| !children.contains(row)) {
        wrong.push(format!("{name}: there is no module {}", join(folder, row)));
    }
    for ((from, to), import) in edges {
        if place(to) > place(from) {
            wrong.push(format!("{name}: {import}, which is in a higher layer (LAYERS-1)"));
        }
        let row = rows.iter().find(|(name, _)| name == from).and_then(|(_, row)| row.as_ref());
        if row.is_some_and(|row| !row.contains(to)) {
            wrong.push(format!("{name}: {import}, which its row does not name (LAYERS-4)"));
        }
    }
    for (from, row) in rows {
        for to in row.iter().flatten() {
            if !edges.contains_key(&(from.clone(), to.clone())) {
                wrong.push(format!("{name}: {from} does not import {to} (LAYERS-4)"));
            }
        }
    }
}

/// The modules in topological order: each imports only earlier modules. Ties are broken by `place`
/// and name.
fn sorted(
    children: &BTreeSet<String>,
    edges: &Edges,
    place: impl Fn(&str) -> Option<usize>,
) -> Result<Vec<String>, BTreeSet<String>> {
    let mut left = children.clone();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_free =
            |module: &&String| !edges.keys().any(|(from, to)| from == *module && left.contains(to));
        let next = left.iter().filter(is_free).min_by_key(|module| (place(module), *module));
        let Some(next) = next.cloned() else { return Err(left) };
        left.remove(&next);
        order.push(next);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns the violations of the layers in a package with these files.
    fn check(files: &[(&str, &str)], table: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join("a/src").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Layers::parse(table).violations(folder.path(), "a")
    }

    const TABLE: &str = "a\n    : low high\n    high: one two\n";

    #[test]
    fn imports_of_lower_layers_are_accepted() {
        let files = [
            ("lib.rs", "mod low;\nmod high;\n#[cfg(test)]\nmod model;\npub use high::two::D;"),
            ("model.rs", "use crate::high;"),
            ("low.rs", "// use crate::high;\n#[cfg(test)]\nmod tests {\nuse crate::high;\n}"),
            ("high/mod.rs", "use crate::low::{A, B};\npub(in crate::high) use self::one::C;"),
            ("high/one.rs", "use crate::low;"),
            ("high/two.rs", "use super::one::{self, C as D};\nfn f() { super::super::low::g() }"),
        ];
        assert_eq!(check(&files, TABLE), [""; 0]);
    }

    #[test]
    fn imports_of_higher_layers_circles_and_unlisted_modules_are_reported() {
        let files = [
            ("lib.rs", ""),
            ("low.rs", "use crate::{low::A, high::{one::B}};"),
            ("high/mod.rs", "use one::C; fn f() { C }"),
            ("high/one.rs", "use super::two;\n\nuse super::D;"),
            ("high/two.rs", ""),
            ("new.rs", ""),
        ];
        let expected = [
            "a: high imports high::one in a circle (LAYERS-2)",
            "a: high::one imports high in a circle (LAYERS-2)",
            "a: new is in no layer (LAYERS-3)",
            "a: low imports high::one, which is in a higher layer (LAYERS-1)",
            "a: high::one imports high::two, which is in a higher layer (LAYERS-1)",
        ];
        assert_eq!(check(&files, TABLE), expected);
    }

    #[test]
    fn a_row_with_imports_is_exact() {
        let files = [
            ("lib.rs", ""),
            ("low.rs", ""),
            ("middle.rs", ""),
            ("high.rs", "use crate::middle::A;"),
        ];
        let table = "a\n    low <-\n    middle <-\n    high <- low\n";
        let expected = [
            "a: high imports middle, which its row does not name (LAYERS-4)",
            "a: high does not import low (LAYERS-4)",
        ];
        assert_eq!(check(&files, table), expected);
        assert_eq!(Layers::parse(table).text(), format!("\n{table}"));
    }
}
