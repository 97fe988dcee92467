//! What does one setting do to short messages?

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::findings::Findings;
use super::measured::{Measured, Run, Transport};
use super::page::{in_words, title};
use super::tables;
use crate::chart::{Axis, Chart, Line, Look, Plot, Point, Scale, Ticks, short_number};
use crate::page;
use crate::result::table::{self, spread_in_words};
use crate::result::{Outcome, Table};
use crate::slowdown;

/// The body of the page.
const TEMPLATE: &str = include_str!("sweep.html");

/// The cluster benchmark, once for each value of a setting.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Rows, ratios and settings of all values. Names have the value behind them.
    pub outcome: Outcome,
    parameter: String,
    /// Each value, and what was found with it.
    points: Vec<(String, Findings)>,
    command: String,
}

/// A figure that is drawn against the values.
struct Curve {
    name: &'static str,
    title: &'static str,
    caption: &'static str,
    unit: &'static str,
    scale: Scale,
    figure: fn(&Run) -> f64,
}

const CURVES: [Curve; 4] = [
    Curve {
        name: "short-p99",
        title: "p99 slowdown of short messages",
        caption: "The smaller half of the messages. Whiskers: least and greatest run.",
        unit: "slowdown",
        scale: Scale::Logarithmic,
        figure: |run| run.summary.short.p99,
    },
    Curve {
        name: "short-p50",
        title: "Median slowdown of short messages",
        caption: "The smaller half of the messages. Whiskers: least and greatest run.",
        unit: "slowdown",
        scale: Scale::Logarithmic,
        figure: |run| run.summary.short.p50,
    },
    Curve {
        name: "all-p99",
        title: "p99 slowdown of all messages",
        caption: "Whiskers: least and greatest run.",
        unit: "slowdown",
        scale: Scale::Logarithmic,
        figure: |run| run.summary.all.p99,
    },
    Curve {
        name: "achieved-load",
        title: "Achieved load",
        caption: "Share of each link that the requests completed in time amount to. Whiskers: least and \
                  greatest run.",
        unit: "share of the link",
        scale: Scale::Linear,
        figure: |run| run.achieved_load,
    },
];

impl Sweep {
    /// Of what was measured with each value of `parameter`, in order. `command` does all of it again.
    ///
    /// # Panics
    ///
    /// If there is no value.
    #[must_use]
    pub fn new(parameter: &str, points: Vec<(String, Measured)>, command: &str) -> Self {
        assert!(!points.is_empty(), "a sweep over nothing");
        let points: Vec<(String, Findings)> =
            points.into_iter().map(|(value, measured)| (value, Findings::new(measured))).collect();
        let mut outcome = Outcome::new("sweep", config(parameter, &points, command));
        for (value, findings) in &points {
            let behind = format!("{parameter}={value}");
            let Outcome { rows, ratios, notes, .. } = findings.outcome.clone();
            outcome.rows.extend(rows.into_iter().map(|mut row| {
                row.name = format!("{} {behind}", row.name);
                row
            }));
            let ratios =
                ratios.into_iter().map(|(name, ratio)| (format!("{name} {behind}"), ratio));
            outcome.ratios.extend(ratios);
            outcome.notes.extend(notes.into_iter().map(|note| format!("{behind}: {note}")));
        }
        let (parameter, command) = (parameter.to_owned(), command.to_owned());
        Self { outcome, parameter, points, command }
    }

    /// What was found with each value, in order.
    pub fn points(&self) -> impl Iterator<Item = (&str, &Findings)> {
        self.points.iter().map(|(value, findings)| (&value[..], findings))
    }

    /// A page that shows everything, for a browser; it loads nothing from elsewhere.
    #[must_use]
    pub fn html(&self) -> String {
        page::render(TEMPLATE, Page::of(self))
    }

    /// The charts of the page as SVG files: name and content of each.
    #[must_use]
    pub fn svg_files(&self) -> Vec<(String, String)> {
        self.plots().iter().map(|plot| plot.file("")).collect()
    }

    fn plots(&self) -> Vec<Plot> {
        CURVES.iter().map(|curve| self.plot(curve)).collect()
    }

    /// The names of all transports, in the order in which they appear.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in self.points.iter().flat_map(|(_, each)| &each.transports).map(Transport::row) {
            if !names.contains(&row) {
                names.push(row);
            }
        }
        names
    }

    fn plot(&self, curve: &Curve) -> Plot {
        let names = self.names();
        let mut values = Vec::new();
        let line = |name: &String| {
            let points = self.points.iter().enumerate().filter_map(|(index, (value, findings))| {
                let transport = findings.transports.iter().find(|each| each.row() == *name)?;
                let spread = transport.spread(curve.figure);
                Some(Point {
                    x: index as f64,
                    y: spread.median,
                    range: Some((spread.min, spread.max)),
                    at: format!("{}={value}", self.parameter).into(),
                    says: spread_in_words(&spread).into(),
                })
            });
            let points: Vec<Point<'_>> = points.collect();
            let colour = slowdown::colour(names.iter().map(|name| &name[..]), name);
            Line { name: name.clone().into(), colour, look: Look::Plain, points }
        };
        let lines: Vec<Line<'_>> = names.iter().map(line).collect();
        for point in lines.iter().flat_map(|line| &line.points) {
            let (least, greatest) = point.range.unwrap_or((point.y, point.y));
            values.extend([least, greatest]);
        }
        let y = match curve.scale {
            Scale::Linear => Axis::linear(curve.unit, values.into_iter(), short_number),
            _ => Axis::logarithmic(curve.unit, values.into_iter(), short_number),
        };
        let x = Axis::new(&self.parameter, Scale::Linear, self.ticks());
        let chart = Chart { description: curve.title, x, y, lines };
        Plot::of_lines(curve.name, curve.title, curve.caption, &chart)
    }

    /// Values stand equally far apart, whether or not they are numbers; half a step is free at both ends.
    fn ticks(&self) -> Ticks {
        let labels =
            self.points.iter().enumerate().map(|(at, (value, _))| (at as f64, value.clone()));
        let (first, last) =
            ((-0.5, String::new()), (self.points.len() as f64 - 0.5, String::new()));
        [first].into_iter().chain(labels).chain([last]).collect()
    }

    /// One line per value and transport.
    fn table(&self) -> Table {
        let header = ["", "", "short p50", "short p99", "all p99", "achieved load", "errors"];
        let line = |value: &str, transport: &Transport| {
            let spread = |figure: fn(&Run) -> f64| spread_in_words(&transport.spread(figure));
            vec![
                value.to_owned(),
                transport.row(),
                spread(|run| run.summary.short.p50),
                spread(|run| run.summary.short.p99),
                spread(|run| run.summary.all.p99),
                spread(|run| run.achieved_load),
                transport.errors().to_string(),
            ]
        };
        let mut header = header.map(str::to_owned);
        header[0].clone_from(&self.parameter);
        let lines = self.points.iter().flat_map(|(value, findings)| {
            findings.transports.iter().map(move |transport| line(value, transport))
        });
        Table {
            title: format!("slowdown by {}", self.parameter),
            header: header.to_vec(),
            lines: lines.collect(),
        }
    }
}

/// What all values have in common, and the values.
fn config(parameter: &str, points: &[(String, Findings)], command: &str) -> Map<String, Value> {
    let first = &points[0].1.outcome.config;
    let same = |name: &str, value: &Value| {
        points.iter().all(|(_, findings)| findings.outcome.config.get(name) == Some(value))
    };
    let common = first.iter().filter(|(name, value)| *name != "command" && same(name, value));
    let mut config: Map<String, Value> =
        common.map(|(name, value)| (name.clone(), value.clone())).collect();
    let values: Vec<&String> = points.iter().map(|(value, _)| value).collect();
    config.insert("parameter".to_owned(), json!(parameter));
    config.insert("values".to_owned(), json!(values));
    config.insert("command".to_owned(), json!([command]));
    config
}

/// The table for people.
impl fmt::Display for Sweep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        table::write(&self.outcome, &[], [&self.table().to_string(), ""], formatter)
    }
}

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    outcome: &'a Outcome,
    title: String,
    parameter: &'a str,
    plots: Vec<Plot>,
    table: Table,
    ratios: Table,
    settings: Vec<(String, String)>,
    base: &'a str,
    transports: Vec<(String, &'a str)>,
    command: &'a str,
}

impl<'a> Page<'a> {
    fn of(sweep: &'a Sweep) -> Self {
        let Sweep { outcome, parameter, points, command } = sweep;
        let first = &points[0].1;
        let ours = &first.settings;
        Self {
            outcome,
            title: title(ours),
            parameter,
            plots: sweep.plots(),
            table: sweep.table(),
            ratios: table::ratios(&outcome.ratios),
            settings: tables::settings(outcome),
            base: &ours.base,
            transports: in_words(&first.transports),
            command,
        }
    }
}
