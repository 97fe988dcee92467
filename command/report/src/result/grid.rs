//! Tables for a terminal and for a page.

use std::fmt;

use comfy_table::{CellAlignment, LineStyle, TableStyle};
use serde::Serialize;

/// A table with a title. The first column is the subject of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// One cell for each column.
    pub lines: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table of these lines, each with one cell per column.
    #[must_use]
    pub fn new(
        title: impl Into<String>,
        header: impl IntoIterator<Item: Into<String>>,
        lines: Vec<Vec<String>>,
    ) -> Self {
        let header = header.into_iter().map(Into::into).collect();
        Self { title: title.into(), header, lines }
    }

    /// Returns a table of words for a terminal: all columns are left-aligned, and there is no
    /// title.
    #[must_use]
    pub fn of_words(header: Vec<String>, lines: Vec<Vec<String>>) -> impl fmt::Display {
        let mut table = grid(header, lines.into_iter());
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Left);
        }
        table
    }

    /// Returns the table for a terminal, without the title.
    pub(super) fn grid(&self) -> comfy_table::Table {
        grid(self.header.clone(), self.lines.iter().cloned())
    }
}

/// Text for a terminal.
impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.title)?;
        write!(formatter, "{}", self.grid())
    }
}

/// Returns a table with a rule only under its header, and all columns but the first right-aligned.
pub(super) fn grid(
    header: Vec<String>,
    lines: impl Iterator<Item = Vec<String>>,
) -> comfy_table::Table {
    const STYLE: TableStyle =
        TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    let mut table = comfy_table::Table::new();
    table.load_style(STYLE).set_header(header).add_rows(lines);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
