//! The layers of the core: which module may import which, and no circle of files.
//!
//! A module is a folder of `src`, or a file beside the folders. The table is in order, the lowest first: a module imports
//! only modules above it in the table, so that no import goes upward and no circle of modules exists. Methods would be
//! a way around it: the methods of a type are defined in the module of the type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules, the lowest first, with the modules that they import.
const LAYERS: &[(&str, &[&str])] = &[
    ("time", &[]),
    ("random", &[]),
    ("ranges", &[]),
    ("limits", &[]),
    ("config", &[]),
    ("drop_reason", &[]),
    ("message", &["time", "ranges", "limits"]),
    ("error", &["message"]),
    ("metrics", &["drop_reason", "error"]),
    ("peer", &["time", "ranges", "limits", "config"]),
    ("rpc", &["time", "message", "error", "peer"]),
    ("event", &["error", "peer", "rpc"]),
    ("budget", &["config", "message", "error", "peer", "event"]),
    ("probe", &["limits", "drop_reason", "error", "peer", "rpc"]),
    ("observation", &["time", "metrics", "rpc", "event", "probe"]),
    ("priority", &["time", "config", "peer"]),
    ("grant", &["limits", "config", "message", "metrics", "peer", "rpc"]),
    ("inbound", &["time", "random", "config", "message", "metrics", "budget", "priority", "grant"]),
    ("timer", &["time", "limits", "config", "error", "rpc"]),
    (
        "tx",
        &[
            "time",
            "limits",
            "config",
            "drop_reason",
            "message",
            "peer",
            "rpc",
            "probe",
            "observation",
            "priority",
            "grant",
        ],
    ),
    (
        "lifecycle",
        &[
            "time",
            "config",
            "message",
            "error",
            "peer",
            "rpc",
            "event",
            "probe",
            "observation",
            "inbound",
            "timer",
            "tx",
        ],
    ),
    ("expiry", &["time", "limits", "error", "rpc", "timer", "lifecycle"]),
    (
        "rx",
        &[
            "time",
            "drop_reason",
            "message",
            "error",
            "peer",
            "rpc",
            "event",
            "probe",
            "priority",
            "inbound",
            "tx",
            "lifecycle",
        ],
    ),
    (
        "transport",
        &[
            "time",
            "random",
            "limits",
            "config",
            "message",
            "error",
            "metrics",
            "peer",
            "rpc",
            "event",
            "probe",
            "observation",
            "inbound",
            "timer",
            "tx",
            "lifecycle",
            "expiry",
            "rx",
        ],
    ),
];

/// A source file without its comments and unit tests.
struct Source {
    /// What it imports, and what it re-exports.
    imports: Vec<Import>,
    /// Everything but `use` items.
    body: String,
}

struct Import {
    /// Segments of the path, such as `crate`, `rpc`, `RpcKey`.
    path: Vec<String>,
    /// The name in this file.
    name: String,
    exported: bool,
}

/// All files of the crate but `lib.rs`, by the path of their module: `rx`, `rx::on_data`.
struct Crate {
    files: BTreeMap<String, Source>,
}

#[test]
fn modules_import_what_the_table_allows() {
    let sources = Crate::read();
    let mut wrong = Vec::new();
    let mut used: BTreeSet<(&str, String)> = BTreeSet::new();
    for (index, (module, allowed)) in LAYERS.iter().enumerate() {
        for target in *allowed {
            if !LAYERS[..index].iter().any(|(lower, _)| lower == target) {
                wrong.push(format!(
                    "the table lets {module} import {target}, which is not below it"
                ));
            }
        }
    }
    for file in sources.files.keys() {
        let module = top(file);
        if file == "crate" {
            continue;
        }
        let Some((module, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{module} is in no layer"));
            continue;
        };
        for target in sources.imports_of(file) {
            let target = top(&target);
            if target == *module {
                continue;
            }
            if !allowed.contains(&target) {
                wrong.push(format!("{file} imports {target}, which the table does not allow"));
            }
            used.insert((module, target.to_owned()));
        }
    }
    for (module, allowed) in LAYERS {
        for target in *allowed {
            if !used.contains(&(module, (*target).to_owned())) {
                wrong.push(format!("the table lets {module} import {target}, but it does not"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_circle_of_files() {
    let sources = Crate::read();
    let edges: BTreeMap<&str, BTreeSet<String>> =
        sources.files.keys().map(|file| (file.as_str(), sources.imports_of(file))).collect();
    let mut finished = BTreeSet::new();
    let mut circles = Vec::new();
    for file in edges.keys() {
        search(file, &edges, &mut Vec::new(), &mut finished, &mut circles);
    }
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 100, "imports are not found");
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn methods_are_defined_in_the_module_of_their_type() {
    let sources = Crate::read();
    let mut wrong = Vec::new();
    for (file, source) in &sources.files {
        for line in
            source.body.lines().filter(|line| line.starts_with("impl") && !line.contains(" for "))
        {
            let words: Vec<&str> = line
                .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\''))
                .filter(|word| !word.is_empty() && !word.starts_with('\'') && *word != "impl")
                .collect();
            let Some(name) = words.first() else { continue };
            let defines = |source: &Source| {
                ["struct", "enum"].iter().any(|kind| has_word_pair(&source.body, kind, name))
            };
            let mut homes = sources.files.iter().filter(|(_, source)| defines(source)).peekable();
            if homes.peek().is_some() && !homes.any(|(home, _)| top(home) == top(file)) {
                wrong.push(format!("{file} gives methods to {name} of another module"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Searches for circles through `file`; `path` leads to it.
fn search(
    file: &str,
    edges: &BTreeMap<&str, BTreeSet<String>>,
    path: &mut Vec<String>,
    finished: &mut BTreeSet<String>,
    circles: &mut Vec<String>,
) {
    if let Some(start) = path.iter().position(|other| other == file) {
        circles.push(format!("{} -> {file}", path[start..].join(" -> ")));
        return;
    }
    if finished.contains(file) {
        return;
    }
    path.push(file.to_owned());
    for target in edges.get(file).into_iter().flatten() {
        search(target, edges, path, finished, circles);
    }
    path.pop();
    finished.insert(file.to_owned());
}

/// The module of a file: the first part of its path.
fn top(file: &str) -> &str {
    file.split("::").next().unwrap_or(file)
}

/// Whether `text` has `first` and `second` as neighbouring words.
fn has_word_pair(text: &str, first: &str, second: &str) -> bool {
    let pair = format!("{first} {second}");
    text.match_indices(&pair).any(|(at, _)| {
        let next = text[at + pair.len()..].chars().next();
        next.is_none_or(|c| !(c.is_alphanumeric() || c == '_'))
    })
}

impl Crate {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let inside = path.strip_prefix(&root).unwrap().with_extension("");
                    let mut parts: Vec<&str> =
                        inside.iter().map(|part| part.to_str().unwrap()).collect();
                    if parts.last() == Some(&"mod") {
                        parts.pop();
                    }
                    let module =
                        if parts == ["lib"] { "crate".to_owned() } else { parts.join("::") };
                    files.insert(module, Source::parse(&fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut all = Self { files };
        let root = all.files.remove("crate").unwrap();
        all.files.insert("crate".to_owned(), root);
        all
    }

    /// The files that `file` imports from.
    fn imports_of(&self, file: &str) -> BTreeSet<String> {
        let mut targets = BTreeSet::new();
        if file == "crate" {
            return targets;
        }
        let source = &self.files[file];
        for import in &source.imports {
            // A re-export is an edge only for a file that uses the name.
            if !import.exported || has_word(&source.body, &import.name) {
                targets.extend(self.resolve(file, &import.path));
            }
        }
        for path in paths(&source.body) {
            targets.extend(self.resolve(file, &path));
        }
        targets.remove(file);
        targets
    }

    /// The file that defines what `path` in `file` names, if it is of this crate.
    fn resolve(&self, file: &str, path: &[String]) -> Option<String> {
        let mut module = match path.first()?.as_str() {
            "crate" => String::new(),
            "super" => parent(file),
            "self" => file.to_owned(),
            child if self.files.contains_key(&join(file, child)) => join(file, child),
            _ => return None,
        };
        for name in &path[1..] {
            let child = join(&module, name);
            if name == "super" {
                module = parent(&module);
            } else if self.files.contains_key(&child) {
                module = child;
            } else {
                let key = if module.is_empty() { "crate" } else { &module };
                let exported = self.files[key]
                    .imports
                    .iter()
                    .find(|import| import.exported && import.name == *name);
                return match exported {
                    Some(import) => self.resolve_export(&module, &import.path),
                    None => Some(key.to_owned()).filter(|key| key != "crate"),
                };
            }
        }
        Some(module)
    }

    /// Like [`Crate::resolve`], for a re-export, whose path may begin with a child of `module`.
    fn resolve_export(&self, module: &str, path: &[String]) -> Option<String> {
        let first = join(module, &path[0]);
        if self.files.contains_key(&first) {
            let mut whole = vec!["crate".to_owned()];
            whole.extend(first.split("::").map(str::to_owned));
            whole.extend_from_slice(&path[1..]);
            return self.resolve(module, &whole);
        }
        self.resolve(module, path)
    }
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() || module == "crate" {
        name.to_owned()
    } else {
        format!("{module}::{name}")
    }
}

fn parent(module: &str) -> String {
    module.rsplit_once("::").map_or_else(String::new, |(parent, _)| parent.to_owned())
}

/// Whether `text` has `word` as a word of its own.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|other| other == word)
}

/// The paths in a text that begin with `crate::` or `super::`.
fn paths(text: &str) -> Vec<Vec<String>> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| word.starts_with("crate::") || word.starts_with("super::"))
        .map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect())
        .collect()
}

impl Source {
    fn parse(text: &str) -> Self {
        let (code, _tests) = text.split_once("\n#[cfg(test)]\nmod ").unwrap_or((text, ""));
        let code: String = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(|line| format!("{line}\n"))
            .collect();
        let (mut imports, mut body) = (Vec::new(), String::new());
        let mut rest = code.as_str();
        while let Some(line_end) = rest.find('\n') {
            let line = rest[..line_end].trim_start();
            let exported = line.starts_with("pub");
            let item = line.strip_prefix("pub").map_or(line, |item| {
                item.strip_prefix('(')
                    .and_then(|item| item.split_once(") "))
                    .map_or(item, |(_, item)| item)
            });
            if let Some(start) = item.trim_start().strip_prefix("use ") {
                let at = start.as_ptr() as usize - rest.as_ptr() as usize;
                let end = at + rest[at..].find(';').unwrap();
                let mut found = Vec::new();
                expand(&rest[at..end], &[], &mut found);
                imports.extend(found.into_iter().map(|(path, name)| Import {
                    path,
                    name,
                    exported,
                }));
                rest = &rest[end + 1..];
            } else {
                body.push_str(&rest[..=line_end]);
                rest = &rest[line_end + 1..];
            }
        }
        Self { imports, body }
    }
}

/// Adds the paths of a `use` tree, each with the name that it introduces.
fn expand(tree: &str, before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut path = before.to_vec();
        path.extend(
            tree[..open]
                .split("::")
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned),
        );
        let inner = tree[open + 1..].trim_end();
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&inner[start..at], &path, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        if !inner[start..].trim().is_empty() {
            expand(&inner[start..], &path, found);
        }
        return;
    }
    let (tree, alias) =
        tree.split_once(" as ").map_or((tree, None), |(tree, alias)| (tree, Some(alias)));
    let mut path = before.to_vec();
    path.extend(tree.split("::").map(|part| part.trim().to_owned()));
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = alias.map_or_else(|| path.last().unwrap().clone(), str::to_owned);
    found.push((path, name));
}
