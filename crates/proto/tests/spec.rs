//! The agreement of the specification and the code.
//!
//! `docs/spec` defines requirements (`**RPC-3.** …` at the beginning of a line). Every one must be cited
//! from the code and from a test, everything that is cited must exist, and the table of parameters must be the
//! one in the code. Module heads define invariants (a label in bold at the beginning of an item, such as `GRANTER-2`), each once. In a packaged crate there is no
//! `docs`: the tests say so and pass.

use apus_proto::PARAMETERS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The areas, as requirements begin.
const AREAS: [&str; 9] = ["WIRE", "RPC", "AMO", "PRIO", "GRANT", "SEND", "TIME", "CAP", "BAD"];

/// Groups of rows of the reference.
const ROWS: [&str; 10] = ["P", "L", "T", "G", "U", "Q", "B", "H", "K", "X"];

/// The workspace, if this is a checkout of it.
fn workspace() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("docs/spec").is_dir() {
        return Some(root);
    }
    eprintln!("SKIPPED: no docs/spec beside the crates; this is not a checkout of the workspace");
    None
}

/// The files below `folder` whose names end in `ending`, with their text.
fn files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// The Rust files of all crates.
fn sources(root: &Path) -> Vec<(PathBuf, String)> {
    [files(&root.join("crates"), ".rs"), files(&root.join("tools"), ".rs")].concat()
}

/// What looks like `PREFIX-number` in a text, for any of the prefixes, as a word of its own.
fn names(text: &str, prefixes: &[&str]) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| {
            word.split_once('-').is_some_and(|(prefix, number)| {
                let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
                digits && prefixes.contains(&prefix)
            })
        })
        .map(str::to_owned)
        .collect()
}

/// The requirements that a file of the specification defines.
fn defined(text: &str) -> Vec<String> {
    let first =
        |line: &str| line.strip_prefix("**")?.split_once(".**").map(|(id, _)| id.to_owned());
    text.lines().filter_map(first).collect()
}

/// By requirement, the files that cite it: in code, and in tests.
#[derive(Default)]
struct Cited {
    code: BTreeMap<String, PathBuf>,
    tests: BTreeMap<String, PathBuf>,
}

impl Cited {
    /// What all crates cite. A source file's unit tests are at its end.
    fn by(root: &Path) -> Self {
        let mut cited = Self::default();
        for (path, text) in sources(root) {
            let inside = path.strip_prefix(root).unwrap();
            let is_source = inside.components().any(|part| part.as_os_str() == "src");
            let (code, tests) = match text.split_once("\n#[cfg(test)]\nmod ") {
                Some(parts) if is_source => parts,
                None if is_source => (text.as_str(), ""),
                _ => ("", text.as_str()),
            };
            if inside.ends_with("crates/proto/tests/spec.rs") {
                continue; // It speaks about requirements, and holds none.
            }
            cited.code.extend(names(code, &AREAS).into_iter().map(|id| (id, inside.to_owned())));
            cited.tests.extend(names(tests, &AREAS).into_iter().map(|id| (id, inside.to_owned())));
        }
        cited
    }
}

#[test]
fn every_requirement_is_cited_and_every_citation_exists() {
    let Some(root) = workspace() else { return };
    let mut requirements = BTreeSet::new();
    let mut wrong = Vec::new();
    for (path, text) in files(&root.join("docs/spec"), ".md") {
        for id in defined(&text) {
            if names(&id, &AREAS).is_empty() {
                wrong.push(format!("{id} is not numbered as requirements are"));
            }
            if !requirements.insert(id.clone()) {
                wrong.push(format!("{id} is defined twice, again in {}", path.display()));
            }
        }
    }
    assert!(requirements.len() > 50, "the form of definitions has changed: {requirements:?}");
    let cited = Cited::by(&root);
    for id in &requirements {
        if !cited.code.contains_key(id) {
            wrong.push(format!("{id} is not cited from any code"));
        }
        if !cited.tests.contains_key(id) {
            wrong.push(format!("{id} is not cited from any test"));
        }
    }
    for (id, path) in cited.code.iter().chain(&cited.tests) {
        if !requirements.contains(id) {
            wrong.push(format!("{id}, cited in {}, is not defined", path.display()));
        }
    }
    for (path, text) in files(&root.join("docs"), ".md") {
        for id in names(&text, &AREAS).difference(&requirements) {
            wrong.push(format!("{id}, cited in {}, is not defined", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_requirement_has_a_source() {
    let Some(root) = workspace() else { return };
    for (path, text) in files(&root.join("docs/spec"), ".md") {
        for paragraph in text.split("\n\n") {
            for id in defined(paragraph) {
                let sourced =
                    paragraph.contains("*Source: ") && paragraph.trim_end().ends_with('*');
                assert!(sourced, "{id} in {} has no source", path.display());
            }
        }
    }
}

#[test]
fn every_row_that_is_cited_is_explained() {
    let Some(root) = workspace() else { return };
    let listed = fs::read_to_string(root.join("docs/spec/rows.md")).unwrap();
    let listed: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(' '))
        .map(|(row, _)| row.to_owned())
        .filter(|row| !names(row, &ROWS).is_empty())
        .collect();
    let texts = [sources(&root), files(&root.join("docs"), ".md")].concat();
    for (path, text) in texts {
        let cited = names(&text, &ROWS);
        let missing: Vec<_> = cited.difference(&listed).collect();
        assert!(
            missing.is_empty(),
            "{} cites rows that rows.md does not list: {missing:?}",
            path.display()
        );
    }
}

/// The invariants that a source file defines in its head.
fn invariants(text: &str) -> Vec<String> {
    let first = |line: &str| {
        let (name, _) = line.strip_prefix("//! - **")?.split_once("**")?;
        name.ends_with(|c: char| c.is_ascii_digit()).then(|| name.to_owned())
    };
    text.lines().filter_map(first).collect()
}

#[test]
fn every_invariant_is_defined_once() {
    let Some(root) = workspace() else { return };
    let crates = ["crates/proto", "crates/wire"];
    let mut texts: Vec<_> =
        crates.iter().flat_map(|folder| files(&root.join(folder), ".rs")).collect();
    texts.retain(|(path, _)| !path.ends_with("tests/spec.rs"));
    let mut defined = BTreeMap::new();
    let mut wrong = Vec::new();
    for (path, text) in &texts {
        for name in invariants(text) {
            let prefix = name.split_once('-').map_or("", |(prefix, _)| prefix);
            if AREAS.contains(&prefix)
                || ROWS.contains(&prefix)
                || names(&name, &[prefix]).is_empty()
            {
                wrong.push(format!(
                    "{name} in {} is not numbered as invariants are",
                    path.display()
                ));
            }
            if let Some(other) = defined.insert(name.clone(), path) {
                wrong.push(format!(
                    "{name} is defined in {} and {}",
                    other.display(),
                    path.display()
                ));
            }
        }
    }
    assert!(defined.len() > 30, "the form of definitions has changed: {defined:?}");
    let prefixes: BTreeSet<&str> =
        defined.keys().filter_map(|name| Some(name.split_once('-')?.0)).collect();
    let prefixes: Vec<&str> = prefixes.into_iter().collect();
    for (path, text) in &texts {
        for name in names(text, &prefixes).iter().filter(|name| !defined.contains_key(*name)) {
            wrong.push(format!("{name}, cited in {}, is not defined", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn the_table_of_parameters_is_the_one_in_the_code() {
    let Some(root) = workspace() else { return };
    let text = fs::read_to_string(root.join("docs/spec/parameters.md")).unwrap();
    let (_, table) = text.split_once("## Integers").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    for (parameter, row) in PARAMETERS.iter().zip(&rows) {
        let (min, max) = (grouped(parameter.min), grouped(parameter.max));
        let default = grouped(parameter.default);
        let want =
            format!("| `{}` | {} | {default} | {min} to {max} | ", parameter.name, parameter.unit);
        let source = row.strip_prefix(&want);
        assert!(source.is_some(), "parameters.md has\n{row}\nand should have\n{want}SOURCE |");
        assert!(source.unwrap().len() > 4, "{} has no source", parameter.name);
    }
    assert_eq!(rows.len(), PARAMETERS.len(), "parameters.md has other parameters than the code");
}
