//! How does the small-writes experiment look in a browser?

use serde::Serialize;

use super::Findings;
use crate::chart::Plot;
use crate::page;
use crate::result::{Outcome, Table, table};

/// The body of the page.
const TEMPLATE: &str = include_str!("page.html");

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    plots: &'a [Plot],
    sentences: &'a [String],
    tables: &'a [Table],
    ratios: Table,
    settings: Vec<(String, String)>,
}

/// The page.
pub(super) fn render(findings: &Findings) -> String {
    let Findings { outcome, sentences, tables, plots } = findings;
    let page = Page {
        outcome,
        plots,
        sentences,
        tables,
        ratios: table::ratios(&outcome.ratios),
        settings: table::settings(outcome),
    };
    page::render(TEMPLATE, page)
}
