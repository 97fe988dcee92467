//! How does a sweep look in a browser?

use apus_report::chart::{Plot, short_number};
use apus_report::page::{self, Card};
use apus_report::result::{Outcome, Table, short};
use serde::Serialize;

use super::findings::Findings;
use super::plots::{self, colour};
use super::reference::Reference;
use super::setting::{Contender, Setting};
use super::tables;

/// The body of the page.
const TEMPLATE: &str = include_str!("page.html");

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    title: String,
    cards: Vec<Card>,
    overview: Vec<Plot>,
    overview_table: Option<Table>,
    sections: Vec<Section<'a>>,
    settings: Vec<(String, String)>,
}

/// What is said about one setting.
#[derive(Serialize)]
struct Section<'a> {
    label: &'a str,
    plots: Vec<Plot>,
    tables: Vec<Table>,
}

/// The page.
pub(super) fn render(findings: &Findings) -> String {
    page::render(TEMPLATE, Page::of(findings))
}

impl<'a> Page<'a> {
    fn of(findings: &'a Findings) -> Self {
        let Findings { outcome, settings } = findings;
        let section = |setting: &'a Setting| Section {
            label: &setting.label,
            plots: plots::of_setting(setting),
            tables: tables::of_setting(setting),
        };
        let one = if let [one] = &settings[..] { Some(one) } else { None };
        let shown = outcome.config.iter().filter(|(name, _)| *name != "apus");
        Self {
            outcome,
            title: title(outcome),
            cards: one.map(cards).unwrap_or_default(),
            overview: plots::overview(settings),
            overview_table: (settings.len() > 1).then(|| tables::overview(settings)),
            sections: settings.iter().map(section).collect(),
            settings: shown
                .map(|(name, value)| (name.replace('_', " "), in_words(value)))
                .collect(),
        }
    }
}

/// What it is about: `w4 at 80 % load, 9x16x4`.
fn title(outcome: &Outcome) -> String {
    let word = |name: &str| outcome.config.get(name).map_or_else(String::new, in_words);
    let load = match outcome.config.get("load").and_then(serde_json::Value::as_f64) {
        Some(load) => format!("{} %", short_number(100.0 * load)),
        None => word("load"),
    };
    format!("{} at {load} load, {} (racks x hosts x spines)", word("workload"), word("topology"))
}

/// A value of the configuration; of several, all.
fn in_words(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(values) => {
            values.iter().map(in_words).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}

/// One for each contender.
fn cards(setting: &Setting) -> Vec<Card> {
    let reference = Reference::of(setting);
    setting.contenders.iter().enumerate().map(|each| card(each, &reference)).collect()
}

fn card((index, contender): (usize, &Contender), reference: &Reference) -> Card {
    let p99 = contender.slowdown(|of| of.small_half_p99_max);
    let mut more = match contender.slowdown(|of| of.mean_by_bytes) {
        Some(mean) => format!("mean by bytes {}", short(mean.median)),
        None => {
            format!("achieved load {}", short(contender.spread(|run| run.achieved_load).median))
        }
    };
    if let Some(row) = reference.row(&contender.name) {
        let (p99, mean) = (row.summary.small_half_p99_max, row.summary.mean_by_bytes);
        more = format!("{more} ({}: {} and {})", row.scheme, short(p99), short(mean));
    }
    Card {
        name: contender.name.clone(),
        colour: colour(&contender.name, index),
        figure: p99.map_or_else(|| "not steady".to_owned(), |p99| short(p99.median)),
        more: format!("greatest p99 slowdown of the smaller half; {more}"),
    }
}
