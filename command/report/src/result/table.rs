//! The text of an outcome for a terminal.

use std::fmt;

use serde_json::Value;

use super::grid::Table;
use super::number::short;
use super::outcome::Outcome;
use super::ratio::Ratio;
use super::row::{Figure, Row};
use crate::machine::Machine;
use crate::stats::Spread;

/// Writes the title, `columns` of the rows, the text `before`, ratios and comparisons, the text
/// `after`, and notes.
///
/// # Errors
///
/// The errors of the formatter.
pub fn write(
    outcome: &Outcome,
    columns: &[&str],
    [before, after]: [&str; 2],
    to: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    writeln!(to, "{}\n{}", origin(outcome), config(outcome))?;
    if !outcome.rows.is_empty() && !columns.is_empty() {
        writeln!(to, "\n{}", rows(&outcome.rows, columns).grid())?;
    }
    if !before.is_empty() {
        writeln!(to, "\n{before}")?;
    }
    if !outcome.ratios.is_empty() {
        writeln!(to, "\n{}", ratios(&outcome.ratios).grid())?;
    }
    for (index, comparison) in outcome.comparisons.iter().enumerate() {
        let gap = if index == 0 { "\n" } else { "" };
        writeln!(to, "{gap}{comparison}")?;
    }
    if !after.is_empty() {
        writeln!(to, "\n{after}")?;
    }
    for note in &outcome.notes {
        writeln!(to, "\nnote: {note}")?;
    }
    Ok(())
}

/// The table for people.
impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, &columns(&self.rows), ["", ""], formatter)
    }
}

/// Returns the experiment, the version and the machine in one line.
#[must_use]
pub fn origin(outcome: &Outcome) -> String {
    let Outcome { experiment, version, commit, machine, .. } = outcome;
    let Machine { cpus, kernel, arch } = machine;
    format!("{experiment}: apus {version} ({commit}), {cpus} cpus, Linux {kernel} {arch}")
}

/// Returns the options in one line: `size 100, seconds 1, runs 5`.
fn config(outcome: &Outcome) -> String {
    let pairs = settings(outcome).into_iter().map(|(name, value)| format!("{name} {value}"));
    pairs.collect::<Vec<_>>().join(", ")
}

/// Returns the options with their values, without lists and objects.
#[must_use]
pub fn settings(outcome: &Outcome) -> Vec<(String, String)> {
    let flat = outcome.config.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    flat.map(|(name, value)| (words(name), shown(value))).collect()
}

/// Returns the set-up of each contender in words: the entries of `settings` in the configuration.
#[must_use]
pub fn contenders(outcome: &Outcome) -> Vec<(String, String)> {
    let settings = outcome.config.get("settings").and_then(Value::as_object);
    let words = |(name, words): (&String, &Value)| Some((name.clone(), words.as_str()?.to_owned()));
    settings.into_iter().flatten().filter_map(words).collect()
}

/// Returns the names of all figures of these rows that a table can show.
#[must_use]
pub fn columns(rows: &[Row]) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for (name, figure) in rows.iter().flat_map(|row| &row.figures) {
        if !matches!(figure, Figure::Detail(_)) && !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    columns
}

/// Returns a table with one line per row; without columns, it has no lines.
#[must_use]
pub fn rows(rows: &[Row], columns: &[&str]) -> Table {
    let header = [""].iter().chain(columns).map(|name| words(name));
    let line = |row: &Row| {
        let cells = columns.iter().enumerate().map(|(index, column)| match row.get(column) {
            Some(figure) => cell(figure),
            None if row.is_missing() && index == 0 => "no result".to_owned(),
            None => String::new(),
        });
        [row.name.clone()].into_iter().chain(cells).collect()
    };
    let rows = if columns.is_empty() { &[] } else { rows };
    Table::new("", header, rows.iter().map(line).collect())
}

/// Returns a table with one line per ratio.
#[must_use]
pub fn ratios(ratios: &[(String, Ratio)]) -> Table {
    let header = ["ratio", "median (min – max)", "difference"].map(str::to_owned).to_vec();
    let line = |(name, ratio): &(String, Ratio)| {
        let proven = match ratio.proven {
            Some(true) => "proven at 95 %",
            Some(false) => "not proven",
            None => "one run",
        };
        vec![name.clone(), ratio_in_words(ratio), proven.to_owned()]
    };
    Table { title: "ratios".to_owned(), header, lines: ratios.iter().map(line).collect() }
}

/// Returns `0.80 (0.78 – 0.83)`.
#[must_use]
pub fn ratio_in_words(ratio: &Ratio) -> String {
    let Ratio { median, min, max, .. } = *ratio;
    spread_in_words(&Spread { median, min, max })
}

/// Returns `5.91 (5.80 – 6.12)`, or only the median if all runs agree.
#[must_use]
pub fn spread_in_words(spread: &Spread) -> String {
    let Spread { median, min, max } = *spread;
    if min == max {
        short(median)
    } else {
        format!("{} ({} – {})", short(median), short(min), short(max))
    }
}

fn cell(figure: &Figure) -> String {
    match figure {
        Figure::Spread(spread) => spread_in_words(spread),
        Figure::Count(count) => count.to_string(),
        Figure::Detail(_) => String::new(),
    }
}

/// Returns a name for people: `p50 us` for `p50_us`.
fn words(name: &str) -> String {
    name.replace('_', " ")
}
