//! The imports of a crate's files.
//!
//! An import is any path that starts with `crate`, `super`, `self` or a child module. It is
//! resolved to the file that defines the item, through re-exports. Comments and the unit tests at
//! the end of a file (`mod tests`) are skipped, as are files compiled only for tests or loom
//! models; macros are not expanded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folders below `src` that contain a crate root: `src` itself, and subfolders with
/// programs.
///
/// # Panics
///
/// A folder cannot be read.
#[must_use]
pub fn crate_roots(src: &Path) -> Vec<PathBuf> {
    let mut roots = vec![src.to_owned()];
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources can be read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if path.join("main.rs").exists() {
                    roots.push(path.clone());
                }
                folders.push(path);
            }
        }
    }
    roots.sort();
    roots
}

/// A source file of `src`, without comments and unit tests.
#[derive(Debug)]
struct Module {
    tokens: Vec<String>,
    /// Re-exported names of the file, with their full paths.
    exports: BTreeMap<String, Vec<String>>,
}

/// The modules of a crate that have a file, by path: `engine::core` is `engine/core/mod.rs`. The
/// root is the empty path.
#[derive(Debug)]
pub struct Modules(BTreeMap<String, Module>);

impl Modules {
    /// Reads the crate with its root in `folder`.
    ///
    /// # Panics
    ///
    /// A file cannot be read.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let mut modules = Self(BTreeMap::new());
        modules.read_folder(folder, "", &crate_roots(folder)[1..]);
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

    fn read_folder(&mut self, folder: &Path, module: &str, other_crates: &[PathBuf]) {
        let read = |path: &Path| fs::read_to_string(path).expect("a source file is text");
        let root = ["mod.rs", "lib.rs", "main.rs"].map(|name| folder.join(name));
        let root = root.iter().find(|path| path.exists());
        let mut for_tests = root.map_or_else(BTreeSet::new, |path| for_tests(&read(path)));
        // A program next to a library: `main.rs` uses the library by its name.
        for_tests.extend(root.filter(|path| path.ends_with("lib.rs")).map(|_| "main".to_owned()));
        for entry in fs::read_dir(folder).expect("a folder of sources can be read") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name is text");
            if other_crates.contains(&path) || for_tests.contains(name) || name == "tests" {
                continue;
            }
            if path.is_dir() {
                self.read_folder(&path, &join(module, name), other_crates);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module =
                    if Some(&path) == root { module.to_owned() } else { join(module, name) };
                let tokens = tokens(&read(&path));
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

    /// The file that defines the item named by a path.
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
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the files that a file imports, except files that it only re-exports from.
    pub fn imports_of(&self, module: &str) -> BTreeSet<String> {
        self.targets(module, |found| !found.exported)
    }

    /// Returns the files that a file imports, including files from which it re-exports a name that
    /// it also uses.
    pub fn uses_of(&self, module: &str) -> BTreeSet<String> {
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
    pub fn types_of(&self, module: &str) -> Vec<&str> {
        let tokens = &self.0[module].tokens;
        let pairs = tokens.iter().zip(tokens.iter().skip(1));
        let types = pairs.filter(|(kind, _)| ["struct", "enum"].contains(&kind.as_str()));
        types.map(|(_, name)| name.as_str()).collect()
    }

    /// Returns the types with inherent `impl` blocks in a file.
    pub fn types_with_methods(&self, module: &str) -> Vec<&str> {
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

    /// Returns the imports that form circles, as `a imports b`: the target imports the file in
    /// turn, directly or through other files.
    #[must_use]
    pub fn circles(&self) -> Vec<String> {
        let graph: BTreeMap<&str, BTreeSet<String>> =
            self.names().map(|module| (module, self.uses_of(module))).collect();
        let reachable = |from: &str| {
            let mut found = BTreeSet::new();
            let mut open = vec![from.to_owned()];
            while let Some(module) = open.pop() {
                for target in graph.get(module.as_str()).into_iter().flatten() {
                    if found.insert(target.clone()) {
                        open.push(target.clone());
                    }
                }
            }
            found
        };
        let from: BTreeMap<&str, BTreeSet<String>> =
            self.names().map(|module| (module, reachable(module))).collect();
        let mut circles = Vec::new();
        for (module, targets) in &graph {
            let back = targets.iter().filter(|target| from[target.as_str()].contains(*module));
            circles.extend(back.map(|target| format!("{module} imports {target}")));
        }
        circles
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

/// Returns the path of the module `name` in `module`.
#[must_use]
pub fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// The modules that a file declares for tests or loom models only: `#[cfg(test)]` or
/// `#[cfg(…_loom)]` before `mod name;`.
fn for_tests(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declarations = lines.windows(2).filter_map(|pair| {
        let condition = pair[0].strip_prefix("#[cfg(")?;
        let name = pair[1].trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        let name = name.strip_prefix("mod ")?.strip_suffix(';')?;
        let only = condition.contains("test)") || condition.contains("loom");
        (only && !condition.contains("not(")).then(|| name.to_owned())
    });
    declarations.collect()
}
