//! How does a cluster look in a browser?

use serde::Serialize;

use super::measured::{Settings, Transport};
use super::{Findings, plots, tables};
use crate::slowdown::{Curve, Percentile};
use apus_report::chart::{Plot, short_number};
use apus_report::page::{self, Card};
use apus_report::result::{Outcome, Table, short, table};

/// The body of the page.
const TEMPLATE: &str = include_str!("page.html");

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    title: String,
    cards: Vec<Card>,
    headline: Plot,
    cdf: Plot,
    ratio_plot: Option<Plot>,
    farthest: Plot,
    beside: Option<Plot>,
    switch: Vec<Plot>,
    machine: Vec<Plot>,
    sizes: Table,
    ratios: Table,
    /// What is proven, in sentences.
    comparisons: Vec<String>,
    priorities: Option<Table>,
    machinery: Table,
    runs: Table,
    settings: Vec<(String, String)>,
    base: &'a str,
    bound: &'a [String],
    /// How each transport is set up.
    transports: Vec<(String, &'a str)>,
    command: &'a str,
}

/// The page.
pub(super) fn render(findings: &Findings) -> String {
    page::render(TEMPLATE, Page::of(findings))
}

impl<'a> Page<'a> {
    fn of(findings: &'a Findings) -> Self {
        let Findings { outcome, settings, transports, curves, .. } = findings;
        let Settings { base, bound, command, .. } = settings;
        Self {
            outcome,
            title: title(settings),
            cards: curves.iter().map(|curve| card(findings, curve)).collect(),
            headline: plots::headline(findings),
            cdf: plots::cdf(findings),
            ratio_plot: plots::ratios(findings),
            farthest: plots::farthest(findings),
            beside: plots::beside(findings),
            switch: plots::switch(findings),
            machine: plots::machine(findings),
            sizes: tables::by_size(findings, &Percentile::ALL),
            ratios: table::ratios(&outcome.ratios),
            comparisons: outcome.comparisons.iter().map(ToString::to_string).collect(),
            priorities: tables::priorities(findings),
            machinery: tables::machinery(findings),
            runs: tables::runs(findings),
            settings: table::settings(outcome),
            base,
            bound,
            transports: in_words(transports),
            command,
        }
    }
}

/// What it is about, in a line: `w4 at 80 % load: 8 nodes, links of 200 Mbit/s`.
fn title(settings: &Settings) -> String {
    let Settings { workload, load, nodes, link, .. } = settings;
    let (load, link) = (short_number(100.0 * load), short_number(*link as f64 / 1e6));
    format!("{workload} at {load} % load: {nodes} nodes, links of {link} Mbit/s")
}

/// How each transport is set up, once.
pub(super) fn in_words(transports: &[Transport]) -> Vec<(String, &str)> {
    let mut words: Vec<(String, &str)> = Vec::new();
    for transport in transports {
        if !words.iter().any(|(name, _)| *name == transport.name) {
            words.push((transport.name.clone(), &transport.settings));
        }
    }
    words
}

fn card(findings: &Findings, curve: &Curve) -> Card {
    Card {
        name: curve.name.clone(),
        colour: plots::colour(findings, &curve.name),
        figure: short(curve.short.p99),
        more: format!("median {}; 1 is the best possible", short(curve.short.p50)),
    }
}
