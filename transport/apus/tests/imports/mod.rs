//! The imports of a crate's files, for tests about the shape of a crate. `transport/proto` and
//! `transport/local` include this file, too.
//!
//! An import is any path that starts with `crate`, `super`, `self` or a child module. It leads to
//! the file that defines the named item: a re-export is followed. Comments and the unit tests at
//! the end of a file (`mod tests`) are left out, and macros are not expanded.

#![allow(dead_code, reason = "each test that includes this file uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A source file of `src`, without comments and unit tests.
struct Module {
    tokens: Vec<String>,
    /// Names that the file re-exports, and their paths.
    exports: BTreeMap<String, Vec<String>>,
}

/// The modules of `src` that have a file, by path: `engine::core` is `engine/core/mod.rs`. The root
/// is the empty path.
pub(crate) struct Modules(BTreeMap<String, Module>);

impl Modules {
    /// Reads the crate whose test this is.
    pub(crate) fn read() -> Self {
        let mut modules = Self(BTreeMap::new());
        modules.read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "");
        let paths: Vec<String> = modules.0.keys().cloned().collect();
        for path in paths {
            let exports = modules
                .paths_in(&path)
                .into_iter()
                .filter(|found| found.exported)
                .map(|found| (found.name, found.path));
            let exports = exports.collect();
            modules.0.get_mut(&path).unwrap().exports = exports;
        }
        modules
    }

    fn read_folder(&mut self, folder: &Path, module: &str) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                self.read_folder(&path, &join(module, &name));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let is_root = ["mod", "lib"].contains(&name.as_str());
                let module = if is_root { module.to_owned() } else { join(module, &name) };
                let tokens = tokens(&fs::read_to_string(&path).unwrap());
                self.0.insert(module, Module { tokens, exports: BTreeMap::new() });
            }
        }
    }

    /// The paths in a file that start with `crate`, `super`, `self` or, in a `use`, a child module.
    fn paths_in(&self, module: &str) -> Vec<Found> {
        let tokens = &self.0[module].tokens;
        let mut found = Vec::new();
        // Modules inside of the file that the position is in: name, and number of open braces
        // around.
        let (mut inline, mut depth) = (Vec::<(&str, i32)>::new(), 0);
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at].as_str();
            match token {
                "mod" if tokens.get(at + 2).is_some_and(|after| after == "{") => {
                    inline.push((&tokens[at + 1], depth));
                }
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.pop_if(|(_, around)| *around == depth);
                }
                _ => {}
            }
            let earlier = |by: usize| at.checked_sub(by).map_or("", |at| tokens[at].as_str());
            let before = earlier(1);
            let exported = before == "use" && ["pub", ")"].contains(&earlier(2));
            let is_path = tokens.get(at + 1).is_some_and(|next| next == "::");
            let is_child = before == "use" && self.0.contains_key(&join(module, token));
            let is_start =
                ["crate", "super", "self"].contains(&token) && before != "in" && before != "::";
            if is_path && (is_start || is_child) {
                let base = if token == "crate" { String::new() } else { module.to_owned() };
                let mut path: Vec<String> =
                    base.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
                if token != "crate" {
                    path.extend(inline.iter().map(|(name, _)| (*name).to_owned()));
                }
                let mut start = at;
                while ["crate", "self", "super"].contains(&tokens[start].as_str()) {
                    if tokens[start] == "super" {
                        path.pop();
                    }
                    start += 2;
                }
                at = tree(tokens, start, &path, exported, &mut found);
            } else {
                at += 1;
            }
        }
        found
    }

    /// The file that defines the item of a path.
    fn file_of(&self, path: &[String]) -> String {
        let mut module = String::new();
        for (at, part) in path.iter().enumerate() {
            let child = join(&module, part);
            if self.0.contains_key(&child) {
                module = child;
            } else {
                return match self.0[&module].exports.get(part) {
                    Some(target) => self.file_of(&[target, &path[at + 1..]].concat()),
                    None => module,
                };
            }
        }
        module
    }

    /// Returns the modules that have a file.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the files that a file imports, except for mere re-exports.
    pub(crate) fn imports_of(&self, module: &str) -> BTreeSet<String> {
        self.targets(module, |found| !found.exported)
    }

    /// Returns the files that a file imports, and re-exported ones whose names it uses itself.
    pub(crate) fn uses_of(&self, module: &str) -> BTreeSet<String> {
        let tokens = &self.0[module].tokens;
        let times = |name: &str| tokens.iter().filter(|token| *token == name).count();
        self.targets(module, |found| !found.exported || times(&found.name) > 1)
    }

    fn targets(&self, module: &str, counts: impl Fn(&Found) -> bool) -> BTreeSet<String> {
        let found = self.paths_in(module).into_iter().filter(counts);
        let targets = found.map(|found| self.file_of(&found.path));
        targets.filter(|target| target != module).collect()
    }

    /// Returns the types that a file defines.
    pub(crate) fn types_of(&self, module: &str) -> Vec<&str> {
        let tokens = &self.0[module].tokens;
        let pairs = tokens.iter().zip(tokens.iter().skip(1));
        let types = pairs.filter(|(kind, _)| ["struct", "enum"].contains(&kind.as_str()));
        types.map(|(_, name)| name.as_str()).collect()
    }

    /// Returns the types that a file gives methods: the types of its `impl` blocks without a trait.
    pub(crate) fn types_with_methods(&self, module: &str) -> Vec<&str> {
        let tokens = &self.0[module].tokens;
        let mut types = Vec::new();
        for (at, _) in tokens.iter().enumerate().filter(|(_, token)| *token == "impl") {
            let before = at.checked_sub(1).map_or("}", |before| tokens[before].as_str());
            if !["}", ";", "]"].contains(&before) {
                continue; // The type of a parameter or of a result.
            }
            let mut depth = 0;
            let head = tokens[at + 1..].iter().take_while(|token| *token != "{");
            let outer: Vec<&str> = head
                .filter(|token| {
                    depth += i32::from(*token == "<") - i32::from(*token == ">");
                    depth == 0 && *token != ">"
                })
                .map(String::as_str)
                .collect();
            if !outer.contains(&"for") {
                let path = outer.split(|token| *token == "where").next();
                types.extend(path.and_then(|path| path.last()));
            }
        }
        types
    }

    /// Checks imports between units: folders, and files at the root. A unit imports only units that
    /// precede it in the table and are in its row, every import that a row allows is needed, and no
    /// files import each other in a circle. The root is the unit with the empty name, which every
    /// row may name. Exempt files may import anything.
    pub(crate) fn check(&self, table: &[(&str, &[&str])], exempt: &[&str]) {
        let mut before = BTreeSet::from([""]);
        for (unit, row) in table {
            for import in *row {
                assert!(
                    before.contains(import),
                    "{unit} may import {import}, which is not before it"
                );
            }
            before.insert(unit);
        }
        let unit_of = |file: &str| file.split("::").next().unwrap_or_default().to_owned();
        let mut needed = BTreeSet::new();
        for file in self.names().filter(|file| !file.is_empty() && !exempt.contains(file)) {
            let unit = unit_of(file);
            let row = table.iter().find(|(name, _)| *name == unit);
            let Some((_, row)) = row else { panic!("{unit} is not in the table") };
            for import in self.uses_of(file).iter().map(|it| unit_of(it)).filter(|it| *it != unit) {
                assert!(row.contains(&import.as_str()), "{file} may not import {import}");
                needed.insert((unit.clone(), import));
            }
        }
        for (unit, row) in table {
            for import in *row {
                let edge = ((*unit).to_owned(), (*import).to_owned());
                assert!(needed.contains(&edge), "{unit} does not need {import}");
            }
        }
        assert_eq!(self.circle(), None);
    }

    /// Returns the files of circles of imports, if there are any. Files that import none of the
    /// others, or that none of the others imports, are removed until there is no such file.
    pub(crate) fn circle(&self) -> Option<Vec<String>> {
        let mut graph: BTreeMap<&str, BTreeSet<String>> =
            self.names().map(|module| (module, self.uses_of(module))).collect();
        let edges: usize = graph.values().map(BTreeSet::len).sum();
        assert!(edges > 5, "imports are not found: {edges}");
        loop {
            let before = graph.len();
            let left: BTreeSet<String> = graph.keys().map(|&module| module.to_owned()).collect();
            let imported: BTreeSet<String> = graph.values().flatten().cloned().collect();
            graph.retain(|module, imports| {
                imported.contains(*module) && !imports.is_disjoint(&left)
            });
            if graph.is_empty() {
                return None;
            }
            if graph.len() == before {
                return Some(left.into_iter().collect());
            }
        }
    }
}

/// A path in a source file.
struct Found {
    path: Vec<String>,
    /// The name that it has in the file.
    name: String,
    exported: bool,
}

/// Reads a path or a tree of paths from a token on. Returns the position behind it.
fn tree(
    tokens: &[String],
    mut at: usize,
    base: &[String],
    exported: bool,
    found: &mut Vec<Found>,
) -> usize {
    let mut path = base.to_vec();
    loop {
        if tokens[at] == "{" {
            at += 1;
            while tokens[at] != "}" {
                at = if tokens[at] == "," {
                    at + 1
                } else {
                    tree(tokens, at, &path, exported, found)
                };
            }
            return at + 1;
        }
        if tokens[at] != "self" {
            path.push(tokens[at].clone());
        }
        at += 1;
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if tokens.get(at).is_some_and(|token| token == "as") {
        name = tokens[at + 1].clone();
        at += 2;
    }
    found.push(Found { path, name, exported });
    at
}

/// The tokens of a file, as far as paths need them, without comments and unit tests.
fn tokens(text: &str) -> Vec<String> {
    let is_tests = |line: &str| line.starts_with("mod ") && line.ends_with("tests {");
    let mut tokens: Vec<String> = Vec::new();
    for line in text.lines().take_while(|line| !is_tests(line)) {
        let line = line.split("//").next().unwrap_or_default();
        let mut rest = line.trim();
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(rest[..length].to_owned());
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

pub(crate) fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}
