//! Citations of the Linux module, of `docs/reference` and of decisions: every address that a
//! comment names exists.
//!
//! [docs/reference/README.md](../../../docs/reference/README.md) defines the forms.

use apus_architecture::repository::{files, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// This file, which holds citations that are wrong on purpose.
const THIS: &str = "lab/architecture/tests/citations.rs";

/// What may be between two words of one citation.
const GAPS: [&str; 4] = [", and ", " and ", ", ", " "];

/// A text without line ends and the marks of comments, so that a citation may continue on the next line.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        let line =
            ["//!", "///", "//"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        joined.push_str(line.trim());
        joined.push(' ');
    }
    joined
}

/// Whether a word in backticks is a file of the module: `homa_rpc.c`, `util/homa_prio.cc`, `perf.txt`.
fn is_file(word: &str) -> bool {
    [".c", ".h", ".cc", ".py", ".txt", ".md"].iter().any(|ending| word.ends_with(ending))
}

/// The word in backticks at the beginning of a text, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('`')?.split_once('`')
}

/// What a text cites as HM `file` `symbol`: pairs, with an empty symbol where a file is named alone.
fn module_citations(text: &str) -> Vec<(String, String)> {
    let mut cited = Vec::new();
    for (at, _) in text.match_indices("HM `") {
        if text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        let mut file = String::new();
        let mut named = true;
        let mut gap = "";
        let mut rest = &text[at + 3..];
        // Pairs follow each other with commas and "and"; further symbols belong to the file before them.
        while let Some((word, after)) = quoted(rest) {
            if is_file(word) {
                if !named {
                    cited.push((file, String::new()));
                }
                (file, named) = (word.to_owned(), false);
            } else if gap == " " || word.starts_with("homa_") || word.starts_with("__homa_") {
                cited.push((file.clone(), word.to_owned()));
                named = true;
            } else {
                break; // Another word in backticks, after the citation.
            }
            let Some(next) = GAPS.into_iter().find(|gap| after.starts_with(gap)) else { break };
            (gap, rest) = (next, &after[next.len()..]);
        }
        if !named {
            cited.push((file, String::new()));
        }
    }
    cited
}

/// Facts of the module that homa-module.md names: a symbol together with its file, a file alone.
fn module_facts(page: &str) -> BTreeSet<(String, String)> {
    let mut facts = BTreeSet::new();
    let mut file = String::new();
    for (n, word) in joined(page).split('`').enumerate() {
        if n % 2 == 0 {
            continue;
        }
        if is_file(word) {
            file = word.to_owned();
            facts.insert((file.clone(), String::new()));
        } else {
            facts.insert((file.clone(), word.to_owned()));
        }
    }
    facts
}

/// The headings of a Markdown file.
fn headings(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if !fenced && line.starts_with('#') {
            found.push(line.trim_start_matches('#').trim());
        }
    }
    found
}

/// The anchor of a heading, as forges make it.
fn anchor(heading: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || "_- ".contains(c);
    heading.to_lowercase().chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-")
}

/// What a text cites as docs/reference/page.md, *Heading*, *Heading* and *Heading*: pairs of page and heading.
fn heading_citations(text: &str) -> Vec<(String, String)> {
    let mut cited = Vec::new();
    for (at, prefix) in text.match_indices("docs/reference/") {
        let rest = &text[at + prefix.len()..];
        let Some((page, rest)) = rest.split_once(".md") else { continue };
        if page.is_empty() || page.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            continue;
        }
        let page = format!("{page}.md");
        cited.push((page.clone(), String::new()));
        let mut rest = rest.trim_start_matches('`');
        while let Some((heading, after)) = [", and *", ", *", " and *", " to *"]
            .iter()
            .find_map(|gap| rest.strip_prefix(gap))
            .and_then(|rest| rest.split_once('*'))
        {
            cited.push((page.clone(), heading.to_owned()));
            rest = after;
        }
    }
    cited
}

/// The numbers of a citation like "Rules for peers, items 1 and 21".
fn item_citations(text: &str, list: &str) -> Vec<usize> {
    let mut cited = Vec::new();
    for (at, _) in text.match_indices(list) {
        // In documents the name is a link: [Rules for peers](…#rules-for-peers), item 4.
        let rest = text[at + list.len()..].trim_start_matches(['*', '`']);
        let rest = match rest.strip_prefix("](") {
            Some(link) => link.split_once(')').map_or(rest, |(_, after)| after),
            None => rest,
        };
        let Some(rest) = rest.strip_prefix(", items ").or_else(|| rest.strip_prefix(", item "))
        else {
            continue;
        };
        for word in rest.split([' ', ',']).filter(|word| !word.is_empty() && *word != "and") {
            let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
            let Ok(number) = digits.parse() else { break };
            cited.push(number);
            if digits.len() < word.len() {
                break; // The end of the sentence.
            }
        }
    }
    cited
}

/// The number of items of a numbered list under a heading.
fn items(page: &str, heading: &str) -> usize {
    let Some((_, section)) = page.split_once(&format!("## {heading}\n")) else { return 0 };
    let section = section.split("\n## ").next().unwrap();
    let numbered =
        |line: &&str| line.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
    section.lines().filter(numbered).count()
}

/// Citations of the numbering that the reference had before: "row P-12", "reference 1.1", "published numbers A".
fn old_citations(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    let is_row = |word: &str| {
        word.split_once('-').is_some_and(|(prefix, number)| {
            prefix.len() == 1
                && prefix.chars().all(|c| c.is_ascii_uppercase())
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_digit())
        })
    };
    let mut found = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let (word, next) =
            (bare(word), words.get(n + 1).map(|next| bare(next)).unwrap_or_default());
        let leads =
            ["row", "rows", "Row", "Rows", "reference", "Reference"].contains(&word.as_str());
        let section = next.split_once('.').is_some_and(|(a, b)| a.len() == 1 && b.len() == 1)
            && next.starts_with(|c: char| c.is_ascii_digit());
        if leads && (is_row(&next) || (section && word.ends_with("eference"))) {
            found.push(format!("{word} {next}"));
        }
    }
    found
}

/// The targets of inline links and reference definitions of a Markdown file.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        let line = line.trim_start();
        fenced ^= line.starts_with("```");
        if fenced {
            continue;
        }
        if let Some((name, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "))
            && !name.contains(']')
        {
            found.push(target.split_whitespace().next().unwrap_or_default().to_owned());
        }
        // What is in backticks is code: every other piece.
        for text in line.split('`').step_by(2) {
            for (_, rest) in text.match_indices("](").map(|(at, _)| text.split_at(at + 2)) {
                if let Some((target, _)) = rest.split_once(')') {
                    found.push(target.to_owned());
                }
            }
        }
    }
    found.retain(|target| !target.contains("://") && !target.starts_with("mailto:"));
    found
}

/// Decisions that a text cites: as `ADR 4`, as `lab ADR 4`, or by a path below `docs/adr` or
/// `lab/adr`. Pairs of folder and number.
fn decision_citations(text: &str) -> Vec<(&'static str, usize)> {
    let number = |rest: &str| {
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().ok()
    };
    let mut cited = Vec::new();
    for (at, mark) in text.match_indices("ADR ") {
        let before = &text[..at];
        if before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        let is_lab = before.ends_with("lab ") || before.ends_with("Lab ");
        let folder = if is_lab { "lab/adr" } else { "docs/adr" };
        cited.extend(number(&text[at + mark.len()..]).map(|number| (folder, number)));
    }
    for folder in ["docs/adr", "lab/adr"] {
        for (at, path) in text.match_indices(folder) {
            let rest = text[at + path.len()..].strip_prefix('/').unwrap_or_default();
            cited.extend(number(rest).map(|number| (folder, number)));
        }
    }
    cited
}

/// The numbers of the pages in a folder of decisions.
fn decisions(root: &Path, folder: &str) -> BTreeSet<usize> {
    let numbered = |(path, _): &(String, String)| path.get(..4).and_then(|n| n.parse().ok());
    files(&root.join(folder), &[".md"]).iter().filter_map(numbered).collect()
}

/// The pages of docs/reference, by name.
fn pages(root: &Path) -> BTreeMap<String, String> {
    files(&root.join("docs/reference"), &[".md"]).into_iter().collect()
}

/// What is wrong with the citations of a text.
fn wrong_citations(text: &str, pages: &BTreeMap<String, String>) -> Vec<String> {
    let text = joined(text);
    let module = &pages["homa-module.md"];
    let facts = module_facts(module);
    let mut wrong = Vec::new();
    for (file, symbol) in module_citations(&text) {
        if !facts.contains(&(file.clone(), symbol.clone())) {
            wrong.push(format!("HM `{file}` `{symbol}` is not in docs/reference/homa-module.md"));
        }
    }
    for (page, heading) in heading_citations(&text) {
        let found = pages
            .get(&page)
            .is_some_and(|text| heading.is_empty() || headings(text).contains(&&*heading));
        if !found {
            wrong.push(format!("docs/reference/{page} has no heading {heading:?}"));
        }
    }
    for list in ["Rules for peers", "Observed on the live module"] {
        for number in item_citations(&text, list) {
            if number == 0 || number > items(module, list) {
                wrong.push(format!("{list} has no item {number}"));
            }
        }
    }
    wrong.extend(
        old_citations(&text)
            .into_iter()
            .map(|old| format!("{old:?} is an address of the old notes")),
    );
    wrong
}

#[test]
fn every_citation_has_its_source_in_the_reference() {
    let root = workspace();
    let pages = pages(&root);
    let mut wrong = String::new();
    let mut cited = 0;
    for (path, text) in files(&root, &[".rs", ".md", ".toml", ".patch", ".lua"]) {
        if path == THIS || path.starts_with("docs/reference/") {
            continue;
        }
        cited += module_citations(&joined(&text)).len();
        for what in wrong_citations(&text, &pages) {
            writeln!(wrong, "{path}: {what}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(cited > 200, "the form of citations has changed: {cited} found");
}

#[test]
fn every_cited_decision_has_a_page() {
    let root = workspace();
    let pages = ["docs/adr", "lab/adr"].map(|folder| (folder, decisions(&root, folder)));
    let pages = BTreeMap::from(pages);
    let mut wrong = String::new();
    let mut cited = 0;
    for (path, text) in files(&root, &[".rs", ".md", ".toml", ".patch", ".lua", ".py", ".json"]) {
        // The notebook and the index of decisions name numbers that have no page.
        if path == THIS || path.starts_with("lab/log/") || path == "docs/adr/README.md" {
            continue;
        }
        for (folder, number) in decision_citations(&joined(&text)) {
            cited += 1;
            if !pages[folder].contains(&number) {
                writeln!(wrong, "{path}: {folder} has no decision {number}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(cited > 50, "the form of citations has changed: {cited} found");
}

#[test]
fn links_of_documents_lead_somewhere() {
    let root = workspace();
    let mut wrong = String::new();
    for (path, text) in files(&root, &[".md"]) {
        if path.contains("/tests/") {
            continue; // Expected output, whose links hold where it is written to.
        }
        for link in links(&text) {
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&path).parent().unwrap();
            let target =
                if file.is_empty() { root.join(&path) } else { root.join(folder).join(file) };
            if !target.exists() {
                writeln!(wrong, "{path}: no file {link}").unwrap();
            } else if !fragment.is_empty() && file.ends_with(".md") {
                let target = fs::read_to_string(target).unwrap();
                if !headings(&target).iter().any(|heading| anchor(heading) == fragment) {
                    writeln!(wrong, "{path}: no heading {link}").unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Paths from the root of the repository that a Markdown file has in backticks: three parts or more,
/// or a file. Words in capitals stand for any name.
fn paths(page: &str) -> Vec<&str> {
    const WINGS: [&str; 10] = [
        "transport",
        "rpc",
        "languages",
        "files",
        "lab",
        "command",
        "packaging",
        "docs",
        "dissector",
        "fuzz",
    ];
    let mut found = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for word in line.split('`').skip(1).step_by(2) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
            let mut parts = word.split('/');
            let is_path = parts.next().is_some_and(|first| WINGS.contains(&first))
                && word.chars().all(is_plain)
                && (word.split('/').count() > 2 || word.contains('.'))
                && !parts
                    .any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()));
            if is_path {
                found.push(word);
            }
        }
    }
    found
}

#[test]
fn paths_in_documents_exist() {
    let root = workspace();
    let mut wrong = String::new();
    let mut named = 0;
    for (path, text) in files(&root, &[".md"]) {
        if path.starts_with("lab/log/") || path.contains("/tests/") {
            continue;
        }
        for name in paths(&text) {
            named += 1;
            if !root.join(name).exists() {
                writeln!(wrong, "{path}: no {name}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(named > 100, "the form of paths has changed: {named} found");
}

/// The checks above can fail.
#[test]
fn wrong_citations_are_found() {
    let page = "## Grants\n`homa_grant.c` `homa_grant_priority`, `homa_grant_outranks` and `perf.txt`\n\
                ## Rules for peers\n1. One.\n2. Two\n   lines.\n";
    let pages = BTreeMap::from([("homa-module.md".to_owned(), page.to_owned())]);
    for right in [
        "(HM `homa_grant.c` `homa_grant_priority`, GRANT-2)",
        "/// HM `homa_grant.c`\n/// `homa_grant_priority` and `homa_grant_outranks`, `perf.txt`, `other`",
        "docs/reference/homa-module.md, *Grants* and *Rules\n// for peers*",
        "Rules for peers, items 1 and 2. [Rules for peers](x.md#rules-for-peers), item 2",
        "rows of a table, by reference to 1.5 GB",
    ] {
        assert_eq!(wrong_citations(right, &pages), [""; 0], "{right}");
    }
    let cited = decision_citations("ADR 4, lab ADR 10; docs/adr/0006-x.md, lab/adr/0002, FADR 3");
    let expected = [("docs/adr", 4), ("lab/adr", 10), ("docs/adr", 6), ("lab/adr", 2)];
    assert_eq!(cited, expected);
    let named =
        paths("`rpc/state`, `lab/a.md` and `transport/x/y`, `fuzz/corpus/TARGET/`, `a/b/c.rs`");
    assert_eq!(named, ["lab/a.md", "transport/x/y"]);
    for wrong in [
        "HM `homa_grant.c` `homa_grant_nothing`",
        "HM `homa_rpc.c` `homa_grant_priority`",
        "HM `homa_grant.c` `homa_grant_priority`, `homa_rpc.c` `homa_rpc_end`",
        "HM `notes.txt`.",
        "docs/reference/homa-module.md, *Grants* and *Timers*",
        "docs/reference/other.md",
        "Rules for peers, items 1 and 3",
        "(row\n/// P-12)",
        "Source: reference 1.1.",
    ] {
        assert_eq!(wrong_citations(wrong, &pages).len(), 1, "{wrong}");
    }
}
