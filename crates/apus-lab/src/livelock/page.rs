//! How does the livelock experiment look in a browser?

use serde::Serialize;

use super::{Findings, Mode};
use crate::chart::Plot;
use crate::page;
use crate::result::{Outcome, Table, table};

/// The body of the page.
const TEMPLATE: &str = include_str!("page.html");

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    /// What each of the modes does.
    modes: Vec<(String, String)>,
    plots: &'a [Plot],
    sentences: &'a [String],
    rates: &'a Table,
    curves: &'a [Table],
    ratios: Table,
    settings: Vec<(String, String)>,
}

/// The page.
pub(super) fn render(findings: &Findings) -> String {
    let Findings { outcome, sentences, modes, rates, curves, plots } = findings;
    let named = |mode: &Mode| (mode.to_string(), mode.words());
    let page = Page {
        outcome,
        modes: modes.iter().map(named).collect(),
        plots,
        sentences,
        rates,
        curves,
        ratios: table::ratios(&outcome.ratios),
        settings: table::settings(outcome),
    };
    page::render(TEMPLATE, page)
}
