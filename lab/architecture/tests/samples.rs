//! Samples of the documentation: each block of C, Python and Rust of the pages below is the text of
//! a file that the tests of its package compile and run.
//!
//! The line before a block names the file, or a region of it:
//! `<!-- sample: languages/python/examples/client.py -->`,
//! `<!-- sample: rpc/rpc/examples/greeter.rs#server -->`. A region is between two lines of comment,
//! `[sample server]` and `[end]`. `APUS_WRITE_SAMPLES=1 cargo test -p apus-architecture --test
//! samples` writes the blocks.

use apus_architecture::repository::workspace;
use std::fs;
use std::path::Path;

/// Pages that are checked.
const PAGES: [&str; 5] = [
    "docs/c.md",
    "docs/python.md",
    "docs/rpc/clients.md",
    "docs/rpc/services.md",
    "rpc/tonic/examples/helloworld/README.md",
];

/// Languages whose blocks must be samples.
const LANGUAGES: [&str; 5] = ["c", "python", "rust", "rust,ignore", "rust,no_run"];

/// A block of a page: the lines between its fences.
#[derive(Debug, PartialEq)]
struct Block {
    language: String,
    /// The file, and the region in it, that the line before the block names.
    source: Option<(String, Option<String>)>,
    /// Numbers of its first line and of the closing fence, from 0.
    lines: std::ops::Range<usize>,
}

/// Returns the blocks of a page.
fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => {
                let mut block = open.take().unwrap();
                block.lines.end = number;
                found.push(block);
            }
            (None, Some(language)) => {
                let source = before
                    .strip_prefix("<!-- sample: ")
                    .and_then(|rest| rest.strip_suffix(" -->"))
                    .map(|place| match place.split_once('#') {
                        Some((file, region)) => (file.to_owned(), Some(region.to_owned())),
                        None => (place.to_owned(), None),
                    });
                let lines = number + 1..number + 1;
                open = Some(Block { language: language.to_owned(), source, lines });
            }
            _ => {}
        }
        before = line;
    }
    found
}

/// Returns a region of a file without its indentation, or the whole file.
fn sample(text: &str, region: Option<&str>) -> Option<Vec<String>> {
    let Some(region) = region else { return Some(text.lines().map(str::to_owned).collect()) };
    let marks = |line: &str, mark: &str| {
        let line = line.trim().trim_start_matches(['/', '*', '#', ' ']);
        line.strip_prefix(mark)
            .is_some_and(|rest| rest.trim_end_matches(['*', '/', ' ']).is_empty())
    };
    let lines = text.lines().skip_while(|line| !marks(line, &format!("[sample {region}]"))).skip(1);
    let lines: Vec<_> = lines.take_while(|line| !marks(line, "[end]")).collect();
    let indentation = |line: &&str| line.len() - line.trim_start().len();
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(indentation).min()?;
    Some(lines.iter().map(|line| line.get(least..).unwrap_or("").to_owned()).collect())
}

#[test]
fn every_block_is_text_of_a_file_that_is_run() {
    let root = workspace();
    let write = std::env::var_os("APUS_WRITE_SAMPLES").is_some();
    let mut problems = Vec::new();
    for page in PAGES {
        let path = root.join(page);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // From the end, so that the numbers of earlier lines stay.
        for block in blocks(&text).into_iter().rev() {
            if !LANGUAGES.contains(&block.language.as_str()) {
                continue;
            }
            let place = format!("{page}:{}", block.lines.start);
            let Some((file, region)) = &block.source else {
                problems.push(format!("{place}: no `<!-- sample: file -->` before the block"));
                continue;
            };
            if !["/examples/", "/tests/"].iter().any(|folder| file.contains(folder)) {
                problems.push(format!("{place}: {file} is neither an example nor a test"));
            }
            let found = fs::read_to_string(Path::new(&root).join(file))
                .ok()
                .and_then(|text| sample(&text, region.as_deref()));
            let Some(sample) = found else {
                problems.push(format!("{place}: no {file}, or no region {region:?} in it"));
                continue;
            };
            if lines[block.lines.clone()] != sample[..] {
                if write {
                    lines.splice(block.lines, sample);
                } else {
                    problems.push(format!("{place}: differs from {file}; APUS_WRITE_SAMPLES=1"));
                }
            }
        }
        if write {
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn regions_are_found_and_lose_their_indentation() {
    let text = "a\n    // [sample one]\n    b {\n        c\n    }\n\n    // [end]\nd\n";
    assert_eq!(sample(text, Some("one")).unwrap(), ["b {", "    c", "}", ""]);
    assert_eq!(sample(text, Some("two")), None);
    assert_eq!(sample("/* [sample x] */\ny\n/* [end] */\n", Some("x")).unwrap(), ["y"]);
    let page = "<!-- sample: a/examples/b.py#c -->\n```python\nd\n```\n```sh\n```\n";
    let found = blocks(page);
    assert_eq!(found[0].source, Some(("a/examples/b.py".into(), Some("c".into()))));
    assert_eq!((found[0].lines.clone(), found[1].source.clone()), (2..3, None));
}
