//! What did an experiment find, as people, machines and browsers read it?
//!
//! An experiment makes its rows, sentences, tables and plots; here is how they are shown.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::chart::Plot;
use crate::page;
use crate::result::{Outcome, Table, table};

/// The result, for people and machines.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Rows, ratios, comparisons, and what is to be known about them.
    pub outcome: Outcome,
    /// What is seen, in words.
    pub sentences: Vec<String>,
    /// Tables that people read in a terminal and in a page.
    pub tables: Vec<Table>,
    /// Charts of the page.
    pub plots: Vec<Plot>,
    /// How terminal and page show them.
    pub look: Look,
}

/// How an experiment shows its findings.
#[derive(Clone, Debug)]
pub struct Look {
    /// Columns of the rows that people read in a terminal.
    pub columns: &'static [&'static str],
    /// What is between two sentences there.
    pub gap: &'static str,
    /// The template of the page, which extends `experiment.html`.
    pub template: &'static str,
    /// What only this template names.
    pub more: Map<String, Value>,
}

/// What templates may name.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    plots: &'a [Plot],
    sentences: &'a [String],
    tables: &'a [Table],
    ratios: Table,
    comparisons: Vec<String>,
    settings: Vec<(String, String)>,
    #[serde(flatten)]
    more: &'a Map<String, Value>,
}

impl Findings {
    /// A page with everything, which needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        let Self { outcome, sentences, tables, plots, look } = self;
        let page = Page {
            outcome,
            plots,
            sentences,
            tables,
            ratios: table::ratios(&outcome.ratios),
            comparisons: outcome.comparisons.iter().map(ToString::to_string).collect(),
            settings: table::settings(outcome),
            more: &look.more,
        };
        page::render(look.template, page)
    }

    /// The plots as files: name and content of each.
    #[must_use]
    pub fn svg_files(&self) -> Vec<(String, String)> {
        self.plots.iter().map(|plot| plot.file("")).collect()
    }
}

/// The tables for people.
impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables: Vec<String> = self.tables.iter().map(Table::to_string).collect();
        let (tables, said) = (tables.join("\n\n"), self.sentences.join(self.look.gap));
        table::write(&self.outcome, self.look.columns, [&tables, &said], formatter)
    }
}

/// What the tests of experiments look at.
#[cfg(any(test, feature = "testing"))]
pub mod read {
    use super::*;

    /// These parts of the JSON object.
    pub fn by_machines(findings: &Findings, parts: &[&str]) -> String {
        let found: Value = serde_json::from_str(&findings.outcome.json()).unwrap();
        let parts: Map<String, Value> =
            parts.iter().map(|part| ((*part).to_owned(), found[*part].clone())).collect();
        serde_json::to_string_pretty(&parts).unwrap()
    }

    /// The text, without the first line, which is about the machine.
    pub fn by_people(findings: &Findings) -> String {
        findings.to_string().split_once('\n').unwrap().1.to_owned()
    }

    /// The page, which has every sentence and every plot.
    pub fn by_browsers(findings: &Findings) -> String {
        let page = findings.html();
        for sentence in &findings.sentences {
            assert!(page.contains(&format!("<li>{sentence}</li>")), "{sentence}");
        }
        for plot in &findings.plots {
            assert!(page.contains(&format!("<h2>{}</h2>", plot.title)), "{}", plot.title);
        }
        page
    }
}
