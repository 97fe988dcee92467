//! The page of results agrees with the stored results. A packaged crate has no page: the tests
//! report that and pass.

use std::fs;

use serde_json::json;

#[path = "../examples/results/page.rs"]
mod page;

#[test]
fn the_committed_page_is_generated_from_the_stored_results() {
    let folder = page::folder();
    let Ok(committed) = fs::read_to_string(folder.join("tables.md")) else {
        eprintln!("SKIPPED: no docs/results/tables.md; this is not a checkout of the workspace");
        return;
    };
    let rendered = page::render(&folder).unwrap();
    assert!(
        committed == rendered,
        "docs/results/tables.md differs from docs/results: cargo run -p apus-report --example results \
         -- write > docs/results/tables.md"
    );
}

#[test]
fn every_stored_result_is_in_the_index() {
    let folder = page::folder();
    let Ok(index) = page::Index::read(&folder) else {
        eprintln!("SKIPPED: no docs/results; this is not a checkout of the workspace");
        return;
    };
    let mut names: Vec<_> = index.results().map(|one| one.name.clone()).collect();
    names.push("index".to_owned());
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|ending| ending != "json") {
            continue; // The page, and the tables of `lab/compare`.
        }
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(names.contains(&name), "{} is in no table of index.json", file.display());
    }
    names.sort();
    assert!(names.windows(2).all(|two| two[0] != two[1]), "a name occurs twice: {names:?}");
}

#[test]
fn figures_have_three_digits() {
    for (value, text) in [
        (json!(5.767), "5.77"),
        (json!(66.687), "66.7"),
        (json!(346.34), "346"),
        (json!(44683.0), "44,700"),
        (json!(0.00217), "0.0022"),
        (json!(0.0), "0"),
        (json!(-1234.0), "-1,230"),
        (json!(500_123), "500,123"),
        (json!(null), ""),
    ] {
        assert_eq!(page::figure(&value, 3), text);
    }
}

#[test]
fn days_become_dates() {
    for (days, date) in [(0, "1970-01-01"), (19_782, "2024-02-29"), (20_779, "2026-11-22")] {
        assert_eq!(page::date(days), date);
    }
}
