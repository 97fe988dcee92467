//! Common parts of all report views.

use std::fmt;

use crate::merge::MergedTraces;
use crate::report::Distribution;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::cells::format_count;
use super::origin;
use apus_report::chart::{Axis, Chart, Line, Plot, Point, Scale, Stroke, short_number};
use apus_report::page;
use apus_report::result::{COMMIT, Table};

/// A rendered report: text, JSON, HTML page and charts.
#[derive(Clone, Debug)]
pub struct ReportView {
    /// Name of the report, for instance `timeline`.
    name: &'static str,
    /// The question that the report answers.
    question: &'static str,
    object: Map<String, Value>,
    origin: Vec<Table>,
    tables: Vec<Table>,
    sentences: Vec<String>,
    plots: Vec<Plot>,
    notes: Vec<String>,
}

/// Values of the page template.
#[derive(Serialize)]
struct Page<'a> {
    question: &'a str,
    name: &'a str,
    sentences: &'a [String],
    plots: &'a [Plot],
    tables: &'a [Table],
    origin: &'a [Table],
    notes: &'a [String],
    version: &'a str,
    commit: &'a str,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

impl ReportView {
    /// Creates a view of a report; `report` must serialize as an object. Tables and charts are
    /// added later.
    pub(super) fn new(
        name: &'static str,
        question: &'static str,
        merged: &MergedTraces,
        config: impl Serialize,
        report: impl Serialize,
    ) -> Self {
        let value = |it: serde_json::Result<Value>| it.expect("maps with text keys");
        let [traces, clocks] = origin::json(merged);
        let mut object = Map::new();
        object.insert("experiment".to_owned(), json!(format!("trace {name}")));
        object.insert("version".to_owned(), json!(VERSION));
        object.insert("commit".to_owned(), json!(COMMIT));
        object.insert("config".to_owned(), value(serde_json::to_value(config)));
        object.insert("traces".to_owned(), traces);
        object.insert("clocks".to_owned(), clocks);
        if let Value::Object(report) = value(serde_json::to_value(report)) {
            object.extend(report);
        }
        if !merged.notes.is_empty() {
            object.insert("notes".to_owned(), json!(merged.notes));
        }
        Self {
            name,
            question,
            object,
            origin: [Some(origin::traces(merged)), origin::clocks(merged)]
                .into_iter()
                .flatten()
                .collect(),
            tables: Vec::new(),
            sentences: origin::one_clock(merged).into_iter().collect(),
            plots: Vec::new(),
            notes: merged.notes.clone(),
        }
    }

    pub(super) fn table(&mut self, table: Table) {
        if !table.lines.is_empty() {
            self.tables.push(table);
        }
    }

    pub(super) fn sentence(&mut self, sentence: String) {
        self.sentences.push(sentence);
    }

    pub(super) fn plot(&mut self, plot: Plot) {
        self.plots.push(plot);
    }

    /// Adds a warning for readers of this report.
    pub(super) fn note(&mut self, note: String) {
        let notes = self.object.entry("notes").or_insert_with(|| json!([]));
        if let Value::Array(notes) = notes {
            notes.push(json!(note));
        }
        self.notes.push(note);
    }

    /// Returns the report as one JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.object).expect("maps with text keys")
    }

    /// Returns the report as a self-contained HTML page.
    #[must_use]
    pub fn html(&self) -> String {
        let Self { name, question, origin, tables, sentences, plots, notes, .. } = self;
        let (version, commit) = (VERSION, COMMIT);
        let page =
            Page { question, name, sentences, plots, tables, origin, notes, version, commit };
        page::render(include_str!("page.html"), page)
    }

    /// Returns name and content of each chart.
    #[must_use]
    pub fn svg_files(&self) -> Vec<(String, String)> {
        self.plots.iter().map(|plot| plot.file("", "")).collect()
    }
}

/// Renders the report as text.
impl fmt::Display for ReportView {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "trace {}: {}", self.name, self.question)?;
        for table in &self.origin {
            writeln!(to, "\n{table}")?;
        }
        for table in &self.tables {
            writeln!(to, "\n{table}")?;
        }
        for (index, sentence) in self.sentences.iter().enumerate() {
            let gap = if index == 0 { "\n" } else { "" };
            writeln!(to, "{gap}{sentence}")?;
        }
        for note in &self.notes {
            writeln!(to, "\nnote: {note}")?;
        }
        Ok(())
    }
}

/// Returns the note that incomplete RPCs were left out.
pub(super) fn incomplete_note(count: usize) -> String {
    let rpcs = format_count(count, "RPC");
    format!("{rpcs} left out: the client's trace lacks the call or the return")
}

/// Returns the note that the traces contain no data for the report, with advice.
pub(super) fn empty_note(merged: &MergedTraces, what: &str) -> String {
    let known = match merged.rpcs.len() {
        0 => "they contain no RPC at all".to_owned(),
        count => {
            format!("none of their {count} RPCs matches; change --max-bytes and the other filters")
        }
    };
    let sampled = if merged.traces_all() {
        ""
    } else {
        "; only some RPCs are traced: trace all of them, or longer"
    };
    format!("the traces contain no matching {what}: {known}{sampled}")
}

/// Draws the percentiles of several distributions, one line each.
pub(super) fn percentile_plot(
    name: &str,
    title: &str,
    caption: &str,
    lines: &[(&str, &Distribution)],
) -> Plot {
    let shares = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];
    let most = lines.iter().map(|(_, times)| times.count()).max().unwrap_or(0) as f64;
    // A distribution of a hundred values has no 99.9th percentile.
    let shares: Vec<f64> =
        shares.into_iter().filter(|it| *it < 0.9 || (1.0 - it) * most >= 1.0).collect();
    let point = |share: f64, times: &Distribution| {
        let micros = (times.percentile(share * 100.0) as f64 / 1e3).max(0.001);
        let says = format!("{} us", super::cells::format_micros(micros * 1e3));
        let at = format!("{} %", short_number(share * 100.0));
        Point { x: share, y: micros, range: None, at: at.into(), says: says.into() }
    };
    let line = |(place, (name, times)): (usize, &(&str, &Distribution))| Line {
        name: (*name).to_owned().into(),
        colour: place % 8,
        stroke: if place < 8 { Stroke::Plain } else { Stroke::Faint },
        points: shares.iter().map(|share| point(*share, times)).collect(),
    };
    let lines: Vec<Line<'_>> = lines.iter().enumerate().map(line).collect();
    let values: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|it| it.y).collect();
    let tick = |share: &f64| (*share, format!("{} %", short_number(share * 100.0)));
    let ticks = shares.iter().filter(|it| [0.0, 0.5, 0.9, 0.99, 0.999].contains(it)).map(tick);
    let chart = Chart {
        description: title,
        x: Axis::new("share that took at most this time", Scale::Nines, ticks.collect()),
        y: Axis::logarithmic("microseconds", values.iter().copied(), short_number),
        lines,
    };
    Plot::of_lines(name, title, caption, &chart)
}
