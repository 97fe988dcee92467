//! Agreement of the specification and the code.
//!
//! `docs/spec`, and `docs/fs` for the file service, define requirements (`**RPC-3.** …` at the
//! start of a line). Every requirement must be cited from the code and from a test, every cited
//! requirement must exist, and the table of parameters must match the code.

use apus_architecture::packages::WINGS;
use apus_architecture::repository::{files, workspace};
use apus_proto::PARAMETERS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The areas: prefixes of requirements.
const AREAS: [&str; 11] =
    ["WIRE", "RPC", "AMO", "PRIO", "GRANT", "SEND", "TIME", "CAP", "BAD", "FS", "SEAL"];

/// The Rust files of all crates.
fn sources(root: &Path) -> Vec<(String, String)> {
    let mut found = files(root, &[".rs"]);
    found.retain(|(path, _)| WINGS.iter().any(|wing| path.split('/').next() == Some(wing)));
    found
}

/// Words of the form `PREFIX-number` in a text, for any of the prefixes.
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
    code: BTreeMap<String, String>,
    tests: BTreeMap<String, String>,
}

impl Cited {
    /// Citations in all crates. A source file's unit tests are at its end.
    fn by(root: &Path) -> Self {
        let mut cited = Self::default();
        for (path, text) in sources(root) {
            let is_source = path.contains("/src/");
            let (code, tests) = match text.split_once("\n#[cfg(test)]\nmod ") {
                Some(parts) if is_source => parts,
                None if is_source => (text.as_str(), ""),
                _ => ("", text.as_str()),
            };
            if path == "lab/architecture/tests/spec.rs" {
                continue; // This file names requirements but tests none of them.
            }
            cited.code.extend(names(code, &AREAS).into_iter().map(|id| (id, path.clone())));
            cited.tests.extend(names(tests, &AREAS).into_iter().map(|id| (id, path.clone())));
        }
        cited
    }
}

#[test]
fn every_requirement_is_cited_and_every_citation_exists() {
    let root = workspace();
    let mut requirements = BTreeSet::new();
    let mut wrong = Vec::new();
    let pages = ["docs/spec", "docs/fs"].map(|folder| files(&root.join(folder), &[".md"]));
    for (path, text) in pages.into_iter().flatten() {
        for id in defined(&text) {
            if names(&id, &AREAS).is_empty() {
                wrong.push(format!("{id} is not numbered as requirements are"));
            }
            if !requirements.insert(id.clone()) {
                wrong.push(format!("{id} is defined twice, again in {path}"));
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
            wrong.push(format!("{id}, cited in {path}, is not defined"));
        }
    }
    for (path, text) in files(&root.join("docs"), &[".md"]) {
        for id in names(&text, &AREAS).difference(&requirements) {
            wrong.push(format!("{id}, cited in {path}, is not defined"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_requirement_has_a_source() {
    let root = workspace();
    for (path, text) in files(&root.join("docs/spec"), &[".md"]) {
        for paragraph in text.split("\n\n") {
            for id in defined(paragraph) {
                let sourced =
                    paragraph.contains("*Source: ") && paragraph.trim_end().ends_with('*');
                assert!(sourced, "{id} in {path} has no source");
            }
        }
    }
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
    let root = workspace();
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
