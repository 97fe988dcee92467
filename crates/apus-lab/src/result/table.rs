//! How does an outcome look to people?

use std::fmt;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use serde_json::Value;

use super::{Figure, Outcome, Ratio, Row};
use crate::stats::Spread;

/// Writes title, the columns of the rows that are asked for, `details`, ratios and notes.
///
/// # Errors
///
/// What `to` says.
pub fn write(
    outcome: &Outcome,
    columns: &[&str],
    details: &str,
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
    if !details.is_empty() {
        writeln!(to, "\n{details}")?;
    }
    if !outcome.ratios.is_empty() {
        writeln!(to, "\n{}", ratios(&outcome.ratios))?;
    }
    for note in &outcome.notes {
        writeln!(to, "\nnote: {note}")?;
    }
    Ok(())
}

/// The options in one line: `size 100, seconds 1, runs 5`.
fn config(outcome: &Outcome) -> String {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let flat = outcome.config.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    flat.map(|(name, value)| format!("{} {}", words(name), shown(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// All figures of these rows that a table can show.
pub(super) fn columns(rows: &[Row]) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for (name, figure) in rows.iter().flat_map(|row| &row.figures) {
        if !matches!(figure, Figure::Detail(_)) && !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    columns
}

/// One line per row.
fn rows(rows: &[Row], columns: &[&str]) -> Table {
    let header = [""].iter().chain(columns).map(|name| words(name)).collect();
    let line = |row: &Row| {
        let cells = columns.iter().map(|column| row.get(column).map_or_else(String::new, cell));
        [row.name.clone()].into_iter().chain(cells).collect()
    };
    grid(header, rows.iter().map(line))
}

fn ratios(ratios: &[(String, Ratio)]) -> Table {
    let header = ["ratio", "median (min – max)", "difference"].map(str::to_owned).to_vec();
    let line = |(name, ratio): &(String, Ratio)| {
        let proven = match ratio.proven {
            Some(true) => "proven at 95 %",
            Some(false) => "not proven",
            None => "one run",
        };
        vec![name.clone(), ratio_in_words(ratio), proven.to_owned()]
    };
    grid(header, ratios.iter().map(line))
}

/// `0.80 (0.78 – 0.83)`.
#[must_use]
pub fn ratio_in_words(ratio: &Ratio) -> String {
    let Ratio { median, min, max, .. } = *ratio;
    cell(&Figure::Spread(Spread { median, min, max }))
}

/// A table with a line under its header and no other lines, all columns but the first flush right.
#[must_use]
pub fn grid(header: Vec<String>, lines: impl Iterator<Item = Vec<String>>) -> Table {
    const STYLE: TableStyle =
        TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header).add_rows(lines);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// `5.91 (5.80 – 6.12)`, or without the range if all runs agree.
fn cell(figure: &Figure) -> String {
    match figure {
        Figure::Spread(Spread { median, min, max }) if min == max => short(*median),
        Figure::Spread(Spread { median, min, max }) => {
            format!("{} ({} – {})", short(*median), short(*min), short(*max))
        }
        Figure::Count(count) => count.to_string(),
        Figure::Detail(_) => String::new(),
    }
}

/// Three significant digits, but never cut whole ones.
#[must_use]
pub fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(3 - digits).unwrap_or(0).min(3);
    format!("{value:.decimals$}")
}

/// A name as people read it: `p50 us` for `p50_us`.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Rounds to five significant digits: more than any measurement here is worth, few enough to read.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    const DIGITS: i32 = 5;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = DIGITS - 1 - value.abs().log10().floor() as i32;
    if decimals <= 0 {
        return value.round();
    }
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        let shown = [0.0, 0.01234, 1.0, 5.912, 59.12, 591.2, 59123.4].map(short);
        assert_eq!(shown, ["0.000", "0.012", "1.00", "5.91", "59.1", "591", "59123"]);
    }

    #[test]
    fn five_digits_are_kept() {
        assert_eq!(rounded(5.912_345_678), 5.9123);
        assert_eq!(rounded(0.001_234_567), 0.001_234_6);
        assert_eq!(rounded(1_234_567.8), 1_234_568.0, "whole numbers are not cut");
        assert_eq!(rounded(-1.999_999), -2.0);
        assert_eq!(rounded(0.0), 0.0);
    }
}
