//! The shape of the workspace: product and tools apart, no crate too large, every crate on the map;
//! and the layers of this crate.
//!
//! In a packaged crate there is no workspace: the tests say so and pass.

use std::collections::{BTreeMap, BTreeSet};
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
            let is_known = name.is_empty() || name == "adr" || names.contains(&name);
            assert!(is_known, "there is no {folder}/{name}");
        }
    }
}

/// The layers of `src`: in each folder, its modules in order, the lowest first. A module imports
/// only modules before it. `lib.rs` and the `mod.rs` files only declare and re-export.
const LAYERS: &str = "
crate
    trace error overload engine metrics snapshot introspection
    call submission cork request handle builder endpoint tokio settings metrics_bridge prometheus
crate::engine
    clock token sync poll_mode spin alarm signal descriptor cpu paths backlog metrics tracer
    waiter wake_list poll_role handoff message calls
    state local core wait_target receive shard
    poll_loop blocking dedicated background_poller asynchronous model
crate::engine::core
    root transmission messages commands shutdown pass
crate::engine::local
    path routes event outstanding_calls served_requests cork state context calls requests
crate::engine::receive
    balance local receiver
crate::engine::state
    time cork quota observation polling room drain inbox network delivery
crate::engine::tracer
    stages records probe_events
";

/// The modules of each folder in [`LAYERS`], in order.
fn layers() -> BTreeMap<String, Vec<&'static str>> {
    let mut layers = BTreeMap::new();
    let mut folder = String::new();
    for line in LAYERS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            None => {
                folder = line.strip_prefix("crate").unwrap().trim_start_matches("::").to_owned();
            }
            Some(names) => {
                let modules: &mut Vec<&str> = layers.entry(folder.clone()).or_default();
                modules.extend(names.split_whitespace());
            }
        }
    }
    layers
}

/// A source file of `src`, without comments and unit tests.
struct Module {
    tokens: Vec<String>,
    /// Names that the file re-exports, and the paths that they stand for.
    exports: BTreeMap<String, Vec<String>>,
}

/// The modules of `src` that have a file, by path: `engine::core` is `engine/core/mod.rs`. The root
/// is the empty path.
struct Modules(BTreeMap<String, Module>);

impl Modules {
    fn read() -> Self {
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

    /// The paths in a file that begin with `crate`, `super`, `self` or, in a `use`, a child module.
    fn paths_in(&self, module: &str) -> Vec<Found> {
        let tokens = &self.0[module].tokens;
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at].as_str();
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

    /// The file that defines what a path names.
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

    /// The files that a file imports.
    fn imports_of(&self, module: &str) -> BTreeSet<String> {
        let found = self.paths_in(module);
        let imports =
            found.iter().filter(|found| !found.exported).map(|found| self.file_of(&found.path));
        imports.filter(|target| target != module).collect()
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
    let code = text.find("\nmod tests {").map_or(text, |end| &text[..end]);
    let mut tokens: Vec<String> = Vec::new();
    for line in code.lines() {
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

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// The folder that two modules share, and what each is in there.
fn fork(one: &str, other: &str) -> (String, String, String) {
    let [one, other] = [one, other].map(|path| path.split("::").collect::<Vec<_>>());
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let at = |path: &[&str]| path.get(same).map_or_else(String::new, |part| (*part).to_owned());
    (one[..same].join("::"), at(&one), at(&other))
}

#[test]
fn modules_import_only_modules_of_lower_layers() {
    let (modules, layers) = (Modules::read(), layers());
    let mut wrong = Vec::new();
    let mut edges = 0;
    for module in modules.0.keys() {
        for target in modules.imports_of(module) {
            edges += 1;
            let (folder, from, to) = fork(module, &target);
            if from.is_empty() {
                wrong.push(format!(
                    "{module} imports its own child {target}: it must only declare and re-export"
                ));
                continue;
            }
            if to.is_empty() {
                wrong.push(format!("{module} imports {target}, which it is in"));
                continue;
            }
            let Some(order) = layers.get(&folder) else { continue };
            let place = |name: &str| order.iter().position(|other| *other == name);
            match (place(&from), place(&to)) {
                (Some(from), Some(to)) if to < from => {}
                (Some(_), Some(_)) => {
                    wrong.push(format!("{module} imports {target}, which is in a higher layer"));
                }
                _ => wrong.push(format!("{from} or {to} is in no layer of \"{folder}\"")),
            }
        }
    }
    assert!(edges > 200, "imports are not found: {edges}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_of_a_layered_folder_is_in_a_layer() {
    let modules = Modules::read();
    for (folder, order) in layers() {
        let prefix = join(&folder, "");
        let inside = modules.0.keys().filter_map(|module| module.strip_prefix(&*prefix));
        let names: BTreeSet<&str> = inside
            .filter(|rest| !rest.is_empty())
            .map(|rest| rest.split("::").next().unwrap())
            .collect();
        assert_eq!(names, order.iter().copied().collect(), "in \"{folder}\"");
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    fn search(
        module: &str,
        modules: &Modules,
        chain: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) {
        if let Some(at) = chain.iter().position(|other| other == module) {
            panic!("a circle of files: {} -> {module}", chain[at..].join(" -> "));
        }
        if done.contains(module) {
            return;
        }
        chain.push(module.to_owned());
        for target in modules.imports_of(module) {
            search(&target, modules, chain, done);
        }
        chain.pop();
        done.insert(module.to_owned());
    }
    let modules = Modules::read();
    let mut done = BTreeSet::new();
    for module in modules.0.keys() {
        search(module, &modules, &mut Vec::new(), &mut done);
    }
}
