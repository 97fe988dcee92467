//! The page of results: an index of tables, stored results, and Markdown rendered from them.
//!
//! Used by the program `results` and by the test that compares the committed page with the stored
//! results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The tables of the page.
#[derive(Deserialize)]
pub(crate) struct Index {
    parts: Vec<Chapter>,
}

/// A chapter: tables that belong together.
#[derive(Deserialize)]
struct Chapter {
    title: String,
    words: String,
    tables: Vec<Table>,
}

/// One table, made of one result or of several with the same columns.
#[derive(Deserialize)]
struct Table {
    title: String,
    #[serde(default)]
    words: String,
    /// Fields of a row, each with the head of its column. Their least and greatest values over the
    /// runs are added.
    columns: Map<String, Value>,
    /// Significant digits of the figures.
    #[serde(default = "three")]
    digits: i32,
    /// Names of the rows to show; empty for all.
    #[serde(default)]
    rows: Vec<String>,
    /// Names of ratios to show, each with its goal ("" for none).
    #[serde(default)]
    ratios: Map<String, Value>,
    results: Vec<ResultEntry>,
}

fn three() -> i32 {
    3
}

/// One result: a command, and the file that it is stored in.
#[derive(Deserialize)]
pub(crate) struct ResultEntry {
    /// The file is `docs/results/NAME.json`.
    pub(crate) name: String,
    /// Arguments of `apus-lab`, without `--json`.
    pub(crate) command: String,
    /// Distinguishes the results of one table; empty for a single result.
    #[serde(default)]
    label: String,
}

/// A stored result.
#[derive(Deserialize)]
struct Stored {
    command: String,
    date: String,
    result: Value,
}

impl Index {
    /// Reads `index.json` of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        parse(&folder.join("index.json"))
    }

    /// Returns all results, in the order of the page.
    pub(crate) fn results(&self) -> impl Iterator<Item = &ResultEntry> {
        self.parts.iter().flat_map(|part| &part.tables).flat_map(|table| &table.results)
    }
}

/// Returns the folder of the stored results in this checkout.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")
}

/// Returns the file that a result is stored in.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Renders the page of an index and the stored results. A result without a file is shown as
/// missing.
pub(crate) fn render(folder: &Path) -> Result<String, String> {
    let index = Index::read(folder)?;
    let mut page = HEAD.to_owned();
    for part in &index.parts {
        let _ = write!(page, "\n## {}\n\n{}\n", part.title, part.words);
        for table in &part.tables {
            page += &section(folder, table)?;
        }
    }
    Ok(page)
}

const HEAD: &str = "# Tables of results

Generated from the results in `docs/results`; do not edit. Each table names the commands that made it, their date, the commit
and the machine. To measure and write the page anew:

```sh
cargo build --release
cargo run --release -p apus-report --example results -- measure target/release/apus-lab
cargo run --release -p apus-report --example results -- write > docs/results/tables.md
```

A figure is the median over the runs of its command, with the least and the greatest in parentheses where they differ. A ratio is computed
pair by pair inside each run, and is **proven** if its 95 % confidence interval does not contain 1. The figures of one machine mean little,
and those of a virtual machine change from hour to hour: run the commands on yours.
";

/// Renders one table with its heading, words, commands, rows and ratios.
fn section(folder: &Path, table: &Table) -> Result<String, String> {
    let mut stored = Vec::new();
    let mut missing = Vec::new();
    for entry in &table.results {
        let file = file(folder, &entry.name);
        if file.exists() {
            stored.push((entry.label.as_str(), parse::<Stored>(&file)?));
        } else {
            missing.push(entry.command.as_str());
        }
    }
    let mut text = format!("\n### {}\n", table.title);
    if !table.words.is_empty() {
        let _ = write!(text, "\n{}\n", table.words);
    }
    for (_, one) in &stored {
        let _ =
            write!(text, "\n`apus-lab {}`: {}, {}.\n", one.command, one.date, origin(&one.result));
    }
    for command in missing {
        let _ = write!(text, "\nNot measured: `apus-lab {command}`.\n");
    }
    if !stored.is_empty() {
        text += &rows(table, &stored);
        text += &ratios(table, &stored);
    }
    Ok(text)
}

/// Returns the commit and the machine of a result.
fn origin(result: &Value) -> String {
    let word = |path: &str| match result.pointer(path) {
        Some(Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
        None => "unknown".to_owned(),
    };
    let [commit, cpus] = [word("/commit"), word("/machine/cpus")];
    let [kernel, arch] = [word("/machine/kernel"), word("/machine/arch")];
    format!("commit {commit}, {cpus} cores, Linux {kernel}, {arch}")
}

/// Renders the rows of all results, with a column for labels if there are any.
fn rows(table: &Table, stored: &[(&str, Stored)]) -> String {
    if table.columns.is_empty() {
        return String::new();
    }
    let labelled = stored.iter().any(|(label, _)| !label.is_empty());
    let heads = table.columns.values().map(|head| head.as_str().unwrap_or_default());
    let mut text = line(labelled.then_some("").into_iter().chain([""]).chain(heads));
    let left = if labelled { "|---|---|" } else { "|---|" };
    let _ = writeln!(text, "{left}{}", "---:|".repeat(table.columns.len()));
    for (label, one) in stored {
        for row in one.result["rows"].as_array().into_iter().flatten() {
            let name = row["name"].as_str().unwrap_or_default();
            if !table.rows.is_empty() && table.rows.iter().all(|wanted| wanted != name) {
                continue;
            }
            let cells = table.columns.keys().map(|field| spread(row, field, table.digits));
            let label = labelled.then_some((*label).to_owned());
            let all: Vec<String> =
                label.into_iter().chain([name.to_owned()]).chain(cells).collect();
            text += &line(all.iter().map(String::as_str));
        }
    }
    format!("\n{text}")
}

/// Renders the ratios of all results, with their goals.
fn ratios(table: &Table, stored: &[(&str, Stored)]) -> String {
    let mut found = String::new();
    let labelled = stored.iter().any(|(label, _)| !label.is_empty());
    let goals: BTreeMap<&str, &str> = table
        .ratios
        .iter()
        .map(|(name, goal)| (&**name, goal.as_str().unwrap_or_default()))
        .collect();
    let with_goals = goals.values().any(|goal| !goal.is_empty());
    for (label, one) in stored {
        for name in table.ratios.keys() {
            let Some(ratio) = one.result["ratios"].get(name) else { continue };
            let label = labelled.then_some(*label);
            let goal = with_goals.then_some(goals[name.as_str()]);
            let name = format!("`{name}`");
            let figure = measured(ratio);
            found += &line(label.into_iter().chain([&*name, &*figure]).chain(goal));
        }
    }
    if found.is_empty() {
        return found;
    }
    let heads = labelled.then_some("").into_iter().chain(["ratio", "measured"]);
    let head = line(heads.chain(with_goals.then_some("goal")));
    let bars = "---|".repeat(head.matches('|').count() - 1);
    format!("\n{head}|{bars}\n{found}")
}

/// Renders a ratio with its least and greatest value, and whether it is proven.
fn measured(ratio: &Value) -> String {
    let text = join([&ratio["median"], &ratio["min"], &ratio["max"]], 3);
    if ratio["proven"] == Value::Bool(true) { format!("{text}, **proven**") } else { text }
}

/// Renders a field of a row with its least and greatest value over the runs.
fn spread(row: &Value, field: &str, digits: i32) -> String {
    join([&row[field], &row[format!("{field}_min")], &row[format!("{field}_max")]], digits)
}

/// Renders the median, with the least and the greatest value if they differ.
fn join(values: [&Value; 3], digits: i32) -> String {
    let [median, min, max] = values.map(|value| figure(value, digits));
    if min.is_empty() || min == max { median } else { format!("{median} ({min} to {max})") }
}

/// Returns a number with `digits` significant digits, thousands with commas; an empty text for
/// other values.
pub(crate) fn figure(value: &Value, digits: i32) -> String {
    let Some(number) = value.as_f64() else { return String::new() };
    let beyond = if number == 0.0 { 0 } else { digits - 1 - number.abs().log10().floor() as i32 };
    if beyond > 0 && value.is_f64() {
        return format!("{number:.*}", usize::try_from(beyond.min(4)).unwrap_or(0));
    }
    let scale = if value.is_f64() { 10_f64.powi(-beyond) } else { 1.0 };
    grouped((number / scale).round() * scale)
}

/// Returns a whole number with commas between thousands.
fn grouped(number: f64) -> String {
    let plain = format!("{:.0}", number.abs());
    let mut text = if number < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a row of a Markdown table.
fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut text = "|".to_owned();
    for cell in cells {
        if cell.is_empty() {
            text += " |";
        } else {
            let _ = write!(text, " {cell} |");
        }
    }
    text + "\n"
}

/// Returns the date of a day, counted from 1970-01-01, in the Gregorian calendar.
///
/// Algorithm: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
pub(crate) fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_of_year = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_of_year + 2) / 5 + 1;
    let month = if month_of_year < 10 { month_of_year + 3 } else { month_of_year - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

fn parse<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<T, String> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}
