//! How does an outcome look to people?

use std::fmt;

use serde_json::Value;

use super::grid::grid;
use super::{Figure, Outcome, Ratio, Row, Table, short};
use crate::stats::Spread;

/// Writes title, the columns of the rows that are asked for, what comes before the ratios, ratios and comparisons,
/// what comes after them, and notes.
///
/// # Errors
///
/// What `to` says.
pub fn write(
    outcome: &Outcome,
    columns: &[&str],
    [before, after]: [&str; 2],
    to: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let Outcome { experiment, version, commit, machine, .. } = outcome;
    writeln!(
        to,
        "{experiment}: apus {version} ({commit}), {} cpus, Linux {} {}",
        machine.cpus, machine.kernel, machine.arch
    )?;
    writeln!(to, "{}", config(outcome))?;
    if !outcome.rows.is_empty() && !columns.is_empty() {
        writeln!(to, "\n{}", rows(&outcome.rows, columns))?;
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

/// The options in one line: `size 100, seconds 1, runs 5`.
fn config(outcome: &Outcome) -> String {
    let pairs = settings(outcome).into_iter().map(|(name, value)| format!("{name} {value}"));
    pairs.collect::<Vec<_>>().join(", ")
}

/// The options, each with its value, as people read them.
#[must_use]
pub fn settings(outcome: &Outcome) -> Vec<(String, String)> {
    let flat = outcome.config.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    flat.map(|(name, value)| (words(name), shown(value))).collect()
}

/// All figures of these rows that a table can show.
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

/// One line per row.
fn rows(rows: &[Row], columns: &[&str]) -> comfy_table::Table {
    let header = [""].iter().chain(columns).map(|name| words(name)).collect();
    let line = |row: &Row| {
        let cells = columns.iter().map(|column| row.get(column).map_or_else(String::new, cell));
        [row.name.clone()].into_iter().chain(cells).collect()
    };
    grid(header, rows.iter().map(line))
}

/// One line per ratio.
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

/// `0.80 (0.78 – 0.83)`.
#[must_use]
pub fn ratio_in_words(ratio: &Ratio) -> String {
    let Ratio { median, min, max, .. } = *ratio;
    spread_in_words(&Spread { median, min, max })
}

/// `5.91 (5.80 – 6.12)`, or without the range if all runs agree.
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

/// A name as people read it: `p50 us` for `p50_us`.
fn words(name: &str) -> String {
    name.replace('_', " ")
}
