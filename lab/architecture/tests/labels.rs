//! Labels of invariants: each is defined once, and each cited label is defined.
//!
//! A module numbers its guarantees in bold, `- **PREFIX-1** …`, in its documentation or in the
//! documentation of a type. The prefix is unique in the repository. Comments, assertions and
//! documents cite the label. The areas of `docs/spec` are the prefixes of requirements;
//! [`spec`](spec.rs) checks these further.

use apus_architecture::repository::{files, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// History, and files with deliberately wrong labels.
const SKIPPED_FILES: [&str; 3] =
    ["CHANGELOG.md", "lab/architecture/tests/labels.rs", "lab/architecture/tests/citations.rs"];

/// Folders of pages that define requirements.
const PAGES: [&str; 2] = ["docs/spec/", "docs/fs/"];

/// Prefixes of words that look like labels but are not.
const FOREIGN: [&str; 8] = ["UTF", "SHA", "ISO", "IEEE", "CVE", "GPL", "JOB", "AES"];

/// Letters that form other words with a digit, by file: workloads, priorities, power states,
/// values, switches.
const LETTERS: [(&str, char); 11] = [
    ("lab/", 'W'),
    ("files/sim/", 'W'),
    ("command/", 'W'),
    ("lab/bench/", 'P'),
    ("command/report/", 'P'),
    ("lab/sweep/", 'P'),
    ("command/doctor/", 'C'),
    ("lab/bench/src/cluster/", 'V'),
    ("lab/sweep/src/", 'V'),
    ("lab/sim/src/topology.rs", 'S'),
    ("lab/sim/src/topology.rs", 'T'),
];

/// Prefix and number of a label, for `GRANTER-2`.
fn label(word: &str) -> Option<(&str, u32)> {
    let (prefix, number) = word.split_once('-')?;
    let capitals = prefix.len() >= 2
        && prefix.starts_with(|c: char| c.is_ascii_uppercase())
        && prefix.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let digits =
        !number.is_empty() && number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit());
    (capitals && digits && !FOREIGN.contains(&prefix)).then(|| (prefix, number.parse().unwrap()))
}

/// Whether a word is a label as they were once: a letter and a digit, such as `M1`.
fn is_old(word: &str) -> bool {
    matches!(word.as_bytes(), [letter, digit] if letter.is_ascii_uppercase() && digit.is_ascii_digit())
}

/// The words of a text: letters, digits, hyphens and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'))
        .map(|word| word.trim_matches('-'))
        .filter(|word| !word.is_empty())
}

/// Prose in a line of Rust: its comment and its string literals.
fn prose(line: &str) -> String {
    let mut prose = String::new();
    let (mut quoted, mut chars) = (false, line.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quoted => {
                chars.next();
            }
            '"' => {
                quoted = !quoted;
                prose.push(' ');
            }
            '/' if !quoted && line[at..].starts_with("//") => {
                prose.push_str(&line[at..]);
                return prose;
            }
            _ if quoted => prose.push(c),
            _ => {}
        }
    }
    prose
}

/// Prose in a line of a file.
fn said(path: &str, line: &str) -> String {
    let after = |mark| line.split_once(mark).map_or("", |(_, comment)| comment).to_owned();
    match path.rsplit_once('.') {
        Some((_, "rs")) => prose(line),
        Some((_, "lua")) => after("--"),
        Some((_, "toml")) => after("#"),
        _ => line.to_owned(),
    }
}

/// Labels that the comments of a source file define: line and label. They are in bold; in Lua,
/// whose comments have no bold, they start a line and are followed by two spaces.
fn defined(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        if let Some((word, _)) =
            line.strip_prefix("--").and_then(|rest| rest.trim_start().split_once("  "))
            && label(word).is_some()
        {
            found.push((n, word));
        }
        if !line.starts_with("//") {
            continue;
        }
        for word in line.split("**").skip(1).step_by(2) {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if word.chars().all(plain) && (label(word).is_some() || is_old(word)) {
                found.push((n, word));
            }
        }
    }
    found
}

/// The requirements that a page of docs/spec defines: `**RPC-3.** …` at the start of a line.
fn requirements(text: &str) -> Vec<String> {
    let first =
        |line: &str| line.strip_prefix("**")?.split_once(".**").map(|(id, _)| id.to_owned());
    text.lines().filter_map(first).filter(|id| label(id).is_some()).collect()
}

/// Errors in the labels of these files; specification pages are the files below docs/spec.
fn wrong_labels(files: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut homes: BTreeMap<String, String> = BTreeMap::new();
    let mut areas = BTreeSet::new();
    for (path, text) in
        files.iter().filter(|(path, _)| PAGES.iter().any(|page| path.starts_with(page)))
    {
        for id in requirements(text) {
            areas.insert(label(&id).unwrap().0.to_owned());
            places.insert(id, path.clone());
        }
    }
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with(".md")) {
        for (line, word) in defined(text) {
            let place = format!("{path}:{line}");
            let Some((prefix, _)) = label(word) else {
                wrong.push(format!(
                    "{place}: {word} needs a prefix that is unique in the repository"
                ));
                continue;
            };
            if areas.contains(prefix) {
                wrong.push(format!("{place}: {word} has the prefix of requirements"));
                continue;
            }
            let home = homes.entry(prefix.to_owned()).or_insert_with(|| path.clone());
            if home != path {
                wrong.push(format!("{place}: {prefix} is the prefix of {home}"));
            }
            if let Some(other) = places.insert(word.to_owned(), place.clone()) {
                wrong.push(format!("{place}: {word} is defined in {other}, too"));
            }
        }
    }
    for (path, text) in files {
        let source = !path.ends_with(".md");
        let other = |word: &str| {
            LETTERS
                .iter()
                .any(|(place, letter)| path.starts_with(place) && word.starts_with(*letter))
        };
        let old = |word: &str| source && is_old(word) && !other(word);
        for (n, line) in (1..).zip(text.lines()) {
            let line = said(path, line);
            for word in words(&line) {
                if label(word).is_some() && !places.contains_key(word) {
                    wrong.push(format!("{path}:{n}: {word} is not defined"));
                } else if old(word) && !line.contains(&format!("**{word}**")) {
                    wrong.push(format!("{path}:{n}: {word} looks like a label without a prefix"));
                }
            }
        }
    }
    wrong
}

#[test]
fn every_label_is_defined_once_and_every_citation_exists() {
    let root = workspace();
    let mut files = files(&root, &[".rs", ".md", ".lua", ".toml"]);
    files.retain(|(path, _)| !SKIPPED_FILES.contains(&path.as_str()));
    let wrong = wrong_labels(&files);
    let lines = wrong.iter().fold(String::new(), |mut lines, line| {
        writeln!(lines, "{line}").unwrap();
        lines
    });
    assert!(wrong.is_empty(), "\n{lines}");
    let labels: usize = files.iter().map(|(_, text)| defined(text).len()).sum();
    assert!(labels > 50, "the form of definitions has changed: {labels} found");
}

/// The check above can fail.
#[test]
fn wrong_labels_are_found() {
    let spec = ("docs/spec/rpc.md", "**RPC-1.** A request and a response. *Source: x.*");
    let wrong = |path: &str, text: &str| {
        let files = [spec, (path, text)].map(|(path, text)| (path.to_owned(), text.to_owned()));
        wrong_labels(&files)
    };
    let head = "//! - **RING-1** First.\n//! - **RING-2** (RPC-1) Second.\n";
    for right in [
        "// RING-2 and RPC-1, in UTF-8",
        "assert!(x, \"RING-1: {y}\"); let Address::V4(z) = K8;",
        "let RING = TOP-1;",
    ] {
        assert_eq!(wrong("transport/a/src/lib.rs", &format!("{head}{right}")), [""; 0], "{right}");
    }
    assert_eq!(wrong("lab/sim/src/lib.rs", "// Workloads W1 to W5."), [""; 0]);
    for (path, text) in [
        ("transport/a/src/lib.rs", "//! - **RING-1** Once more."),
        ("transport/a/src/lib.rs", "//! - **RPC-1** A requirement."),
        ("transport/a/src/lib.rs", "//! - **M1** One letter."),
        ("transport/a/src/lib.rs", "// As M1 says."),
        ("transport/a/src/lib.rs", "assert!(x, \"W1\");"),
        ("transport/a/src/lib.rs", "// RING-3."),
        ("docs/adr/1.md", "see RPC-2"),
    ] {
        let text = if path.ends_with(".rs") { format!("{head}{text}") } else { text.to_owned() };
        assert_eq!(wrong(path, &text).len(), 1, "{text}");
    }
    let files = [
        ("transport/a/src/a.rs", "//! **RING-1** Here."),
        ("transport/a/src/b.rs", "//! - **RING-3** Elsewhere."),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(wrong_labels(&files).len(), 1, "a prefix has one home");
}
