//! Findings: the result of an experiment, and its renderers: text for a terminal, JSON, a page, and
//! chart files.
//!
//! An experiment describes its findings as data: an [`Outcome`] and [sections](Section) of plots,
//! tables and sentences. They are rendered only here, so text, JSON and page cannot contradict each
//! other.

use std::fmt;

use serde::Serialize;

use crate::chart::Plot;
use crate::page::{self, Card};
use crate::result::{Outcome, Table, table};

/// The result of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Rows, ratios, comparisons and notes: the content of the JSON object.
    pub outcome: Outcome,
    /// Heading of the page.
    pub title: String,
    /// Paragraph below the heading.
    pub lead: String,
    /// Columns of the rows on a terminal; `None` for all.
    #[serde(skip)]
    pub columns: Option<Vec<&'static str>>,
    /// The main figure of each contender, at the top of the page.
    pub cards: Vec<Card>,
    /// Everything else, in the order of the page.
    pub sections: Vec<Section>,
    /// Files of comma-separated values, each with name and content.
    #[serde(skip)]
    pub csv_files: Vec<(String, String)>,
}

/// A part of the findings with an optional heading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// Heading on the page; empty for none.
    pub heading: String,
    /// Whether a terminal leaves the section out.
    #[serde(skip)]
    pub page_only: bool,
    /// The content, in order.
    pub parts: Vec<Part>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Part {
    /// A chart; a terminal leaves it out.
    Plot(Plot),
    /// A table with its title.
    Table(Table),
    /// A paragraph.
    Text(String),
    /// Sentences, one per line.
    List(Vec<String>),
    /// Lines in a fixed-width font.
    Listing(Vec<String>),
    /// Names with their explanations.
    Pairs(Vec<(String, String)>),
    /// The ratios of the outcome, and its comparisons.
    Ratios,
}

impl From<Plot> for Part {
    fn from(plot: Plot) -> Self {
        Self::Plot(plot)
    }
}

impl From<Table> for Part {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl Section {
    /// Returns a section without parts.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), page_only: false, parts: Vec::new() }
    }

    /// Returns the set-up of each contender: the entries of `settings` in the configuration.
    #[must_use]
    pub fn contenders(outcome: &Outcome) -> Self {
        let pairs = table::contenders(outcome);
        let pairs = (!pairs.is_empty()).then_some(Part::Pairs(pairs));
        Self::new("Set-up of the contenders").with_all(pairs)
    }

    /// Shows the section on pages only.
    #[must_use]
    pub fn on_page(self) -> Self {
        Self { page_only: true, ..self }
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, part: impl Into<Part>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Adds parts.
    #[must_use]
    pub fn with_all<P: Into<Part>>(mut self, parts: impl IntoIterator<Item = P>) -> Self {
        self.parts.extend(parts.into_iter().map(Into::into));
        self
    }
}

/// The fields that the template of a page may name.
#[derive(Serialize)]
struct Page<'a> {
    #[serde(flatten)]
    findings: &'a Findings,
    rows: Table,
    ratios: Table,
    comparisons: Vec<String>,
    settings: Vec<(String, String)>,
}

impl Findings {
    /// Returns findings without sections.
    #[must_use]
    pub fn new(outcome: Outcome, title: impl Into<String>, lead: impl Into<String>) -> Self {
        Self {
            outcome,
            title: title.into(),
            lead: lead.into(),
            columns: None,
            cards: Vec::new(),
            sections: Vec::new(),
            csv_files: Vec::new(),
        }
    }

    /// Sets the columns of the rows on a terminal.
    #[must_use]
    pub fn with_columns(self, columns: &'static [&'static str]) -> Self {
        Self { columns: Some(columns.to_vec()), ..self }
    }

    /// Adds a section, unless it is empty.
    #[must_use]
    pub fn with(mut self, section: Section) -> Self {
        if !section.parts.is_empty() {
            self.sections.push(section);
        }
        self
    }

    /// Adds the usual sections: plots, sentences, tables and ratios.
    #[must_use]
    pub fn with_all(
        self,
        plots: Vec<Plot>,
        sentences: Vec<String>,
        tables: impl IntoIterator<Item = Table>,
    ) -> Self {
        let list = (!sentences.is_empty()).then_some(Part::List(sentences));
        let contenders = Section::contenders(&self.outcome).on_page();
        let ratios = (!self.outcome.ratios.is_empty()).then_some(Part::Ratios);
        self.with(Section::new("").with_all(plots))
            .with(Section::new("Summary").with_all(list))
            .with(Section::new("").with_all(tables))
            .with(Section::new("Ratios inside each run").with_all(ratios))
            .with(contenders)
    }

    /// Returns a self-contained page with everything.
    #[must_use]
    pub fn html(&self) -> String {
        let outcome = &self.outcome;
        page::render(
            include_str!("page/findings.html"),
            Page {
                findings: self,
                rows: table::rows(&outcome.rows, &self.columns()),
                ratios: table::ratios(&outcome.ratios),
                comparisons: outcome.comparisons.iter().map(ToString::to_string).collect(),
                settings: table::settings(outcome),
            },
        )
    }

    /// Returns the plots as files with name and content, in the order of the page. The heading of a
    /// section is part of the names if several sections have plots of one name.
    #[must_use]
    pub fn svg_files(&self) -> Vec<(String, String)> {
        let all = || self.sections.iter().flat_map(|each| each.plots().map(move |it| (each, it)));
        let is_unique =
            |plot: &Plot| all().filter(|(_, other)| other.name == plot.name).count() == 1;
        let source = table::origin(&self.outcome);
        let file = |(section, plot): (&Section, &Plot)| {
            plot.file(if is_unique(plot) { "" } else { &section.heading }, &source)
        };
        all().map(file).collect()
    }

    /// Returns the plots in the order of the page.
    pub fn plots(&self) -> impl Iterator<Item = &Plot> {
        self.sections.iter().flat_map(Section::plots)
    }
}

impl Findings {
    fn columns(&self) -> Vec<&str> {
        self.columns.clone().unwrap_or_else(|| table::columns(&self.outcome.rows))
    }
}

impl Section {
    fn plots(&self) -> impl Iterator<Item = &Plot> {
        self.parts.iter().filter_map(|part| match part {
            Part::Plot(plot) => Some(plot),
            _ => None,
        })
    }
}

/// The text for a terminal: settings, rows, tables, ratios, comparisons, sentences, notes.
impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut tables, mut sentences) = (Vec::new(), Vec::new());
        let shown = self.sections.iter().filter(|section| !section.page_only);
        for part in shown.flat_map(|section| &section.parts) {
            match part {
                Part::Plot(_) | Part::Ratios => {}
                Part::Table(table) => tables.push(table.to_string()),
                Part::Text(text) => sentences.push(text.clone()),
                Part::List(lines) | Part::Listing(lines) => sentences.push(lines.join("\n")),
                Part::Pairs(pairs) => {
                    let line = |(name, words): &(String, String)| format!("{name}: {words}");
                    sentences.push(pairs.iter().map(line).collect::<Vec<_>>().join("\n"));
                }
            }
        }
        sentences.retain(|each| !each.is_empty());
        let columns = self.columns();
        let around = [tables.join("\n\n"), sentences.join("\n\n")];
        table::write(&self.outcome, &columns, around.each_ref().map(|text| &text[..]), formatter)
    }
}

/// Renderings of findings for the tests of experiments.
#[cfg(any(test, feature = "testing"))]
pub mod read {
    use serde_json::{Map, Value};

    use super::*;

    /// Returns the JSON object, reduced to `parts`.
    pub fn json(findings: &Findings, parts: &[&str]) -> String {
        let found: Value = serde_json::from_str(&findings.outcome.json()).unwrap();
        let parts: Map<String, Value> =
            parts.iter().map(|part| ((*part).to_owned(), found[*part].clone())).collect();
        serde_json::to_string_pretty(&parts).unwrap()
    }

    /// Returns the text for a terminal without its first line, which describes the machine.
    pub fn text(findings: &Findings) -> String {
        findings.to_string().split_once('\n').unwrap().1.to_owned()
    }

    /// Returns the page, and asserts that it contains every sentence and every plot.
    pub fn page(findings: &Findings) -> String {
        let page = findings.html();
        for part in findings.sections.iter().flat_map(|section| &section.parts) {
            if let Part::List(sentences) = part {
                for sentence in sentences {
                    let escaped = minijinja::HtmlEscape(sentence).to_string();
                    assert!(page.contains(&format!("<li>{escaped}</li>")), "{sentence}");
                }
            }
        }
        for plot in findings.plots() {
            let title = minijinja::HtmlEscape(&plot.title);
            assert!(page.contains(&format!(">{title}</h")), "{}", plot.title);
        }
        page
    }
}
