//! How does the demo look in a browser?

use serde::Serialize;

use super::Findings;
use crate::slowdown::{self, Curve, Percentile};
use apus_report::chart::{Look, Plot};
use apus_report::page::{self, Card};
use apus_report::result::{Outcome, Table, short, table};

/// The body of the page.
const TEMPLATE: &str = include_str!("page.html");

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    explanation: &'a [String],
    contenders: Vec<Card>,
    by_size: Plot,
    cdf: Plot,
    sizes: Table,
    ratios: Table,
    /// How each contender is set up.
    settings: Vec<(&'a str, &'a str)>,
}

/// The page.
pub(super) fn render(findings: &Findings) -> String {
    page::render(TEMPLATE, Page::of(findings))
}

impl<'a> Page<'a> {
    fn of(findings: &'a Findings) -> Self {
        let Findings { outcome, explanation, curves, settings } = findings;
        let names = || curves.iter().map(|curve| &curve.name[..]);
        let card = |curve: &Curve| Card {
            name: curve.name.clone(),
            colour: slowdown::colour(names(), &curve.name),
            figure: short(curve.short.p99),
            more: format!("median {}; 1 is the best possible", short(curve.short.p50)),
        };
        Self {
            outcome,
            explanation,
            contenders: curves.iter().map(card).collect(),
            by_size: by_size(curves),
            cdf: cdf(curves),
            sizes: findings.by_size(),
            ratios: table::ratios(&outcome.ratios),
            settings: names().zip(settings.iter().map(|settings| &settings[..])).collect(),
        }
    }
}

fn by_size(curves: &[Curve]) -> Plot {
    let chart = slowdown::by_size(
        curves,
        &[(Percentile::P50, Look::Faint), (Percentile::P99, Look::Plain)],
    );
    let caption = "Solid: 99th percentile. Dashed: median. Each point is a tenth of the messages.";
    Plot::of_lines("by-size", "Slowdown by message size", caption, &chart)
}

fn cdf(curves: &[Curve]) -> Plot {
    let caption = "Share of the smaller half of the messages that took no longer than a time.";
    Plot::of_lines("short", "Short messages", caption, &slowdown::cdf(curves))
}
