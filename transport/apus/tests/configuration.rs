//! `docs/configuration.md` describes every key of a configuration file with its default, and no
//! other keys.
//!
//! A packaged crate has no such page: the test prints that and passes.

use std::fs;
use std::path::Path;

use apus::{Endpoint, Settings};

/// Returns section, key and default of each row in the page's tables.
fn rows(page: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title
                .strip_prefix("`[")
                .and_then(|it| it.split_once("]`"))
                .map_or_else(String::new, |it| it.0.to_owned());
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let [key, default, _] = cells[..]
            && let (Some(key), Some(default)) = (quoted(key), quoted(default))
        {
            rows.push((section.clone(), key.to_owned(), default.to_owned()));
        }
    }
    rows
}

fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

#[test]
fn every_key_is_explained_with_its_default() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let Ok(page) = fs::read_to_string(page) else {
        eprintln!("SKIPPED: no docs/configuration.md; this is not a checkout of the workspace");
        return;
    };
    let rows = rows(&page);
    // The error about a key that does not exist lists all that do.
    for section in ["", "udp", "trace", "security"] {
        let text =
            if section.is_empty() { "x = 1".to_owned() } else { format!("[{section}]\nx = 1") };
        let error = text.parse::<Settings>().unwrap_err().to_string();
        let keys = error.split("expected one of ").nth(1).expect("a list of keys");
        let keys = keys.lines().next().unwrap().split(", ").map(|key| quoted(key).unwrap());
        for key in keys.filter(|key| !["udp", "trace", "security", "protocol"].contains(key)) {
            assert!(rows.iter().any(|row| row.0 == section && row.1 == key), "[{section}] {key}");
        }
    }
    // A file with all defaults gives the same builder as no file.
    let all: String = ["", "udp", "trace"]
        .iter()
        .map(|section| {
            let of = rows.iter().filter(|row| row.0 == *section);
            let lines: String =
                of.map(|(_, key, default)| format!("{key} = {default}\n")).collect();
            if section.is_empty() { lines } else { format!("[{section}]\n{lines}") }
        })
        .collect();
    let settings: Settings = all.parse().unwrap_or_else(|error| panic!("{error}\n{all}"));
    let builder = |settings| format!("{:?}", Endpoint::builder().settings(settings));
    assert_eq!(builder(&settings), builder(&Settings::default()));
    assert_eq!(settings.receivers, Some(1));
}
