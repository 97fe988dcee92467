//! The analysis of a sweep: the cluster benchmark for each value of each setting.

use serde_json::{Map, Value, json};

use super::analysis::Analysis;
use super::csv;
use super::findings::{definition, once_more};
use super::input::{Measured, Run, Transport};
use crate::slowdown;
use apus_report::chart::{Axis, Heading, Line, Plot, Point, Scale, Stroke, Ticks, short_number};
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::table::spread_in_words;
use apus_report::result::{Outcome, Table};

/// The cluster benchmark, once for each value of each setting that was varied.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Rows, ratios and settings of all values. The value is appended to names.
    pub outcome: Outcome,
    varied: Vec<(Varied, Vec<Analysis>)>,
    command: String,
}

/// A setting that was varied while all others stayed as they were.
#[derive(Clone, Debug)]
pub struct Varied {
    /// Its name.
    pub parameter: String,
    /// Its value while others were varied.
    pub otherwise: String,
    /// Each value, and its measurements; at least one value.
    pub points: Vec<(String, Measured)>,
}

/// A figure plotted against the values.
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
    /// Builds the report from the measurements. `command` repeats them.
    ///
    /// # Panics
    ///
    /// No setting was varied, or a setting had no value.
    #[must_use]
    pub fn new(varied: Vec<Varied>, command: &str) -> Self {
        assert!(!varied.is_empty(), "a sweep over nothing");
        let found = |varied: Varied| {
            assert!(!varied.points.is_empty(), "{} without a value", varied.parameter);
            let findings = varied.points.iter().map(|(_, measured)| Analysis::of(measured.clone()));
            let findings = findings.collect();
            (varied, findings)
        };
        let varied: Vec<(Varied, Vec<Analysis>)> = varied.into_iter().map(found).collect();
        let mut outcome = Outcome::new("sweep", config(&varied, command));
        let mut notes: Vec<(String, Vec<String>)> = Vec::new();
        for (behind, findings) in points(&varied) {
            let Outcome { rows, ratios, notes: said, .. } = findings.outcome.clone();
            outcome.rows.extend(rows.into_iter().map(|mut row| {
                row.name = format!("{} {behind}", row.name);
                row
            }));
            let ratios =
                ratios.into_iter().map(|(name, ratio)| (format!("{name} {behind}"), ratio));
            outcome.ratios.extend(ratios);
            for note in said {
                match notes.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, values)) => values.push(behind.clone()),
                    None => notes.push((note, vec![behind.clone()])),
                }
            }
        }
        let all = points(&varied).count();
        let said = notes.into_iter().map(|(note, values)| {
            if values.len() == all { note } else { format!("{}: {note}", values.join(", ")) }
        });
        outcome.notes = said.collect();
        Self { outcome, varied, command: command.to_owned() }
    }

    /// Returns the analysis for each value, in order; values as `NAME=VALUE`.
    pub fn points(&self) -> impl Iterator<Item = (String, &Analysis)> {
        points(&self.varied)
    }

    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let Self { outcome, varied, command } = self;
        let several = varied.len() > 1;
        let ours = &varied[0].1[0].settings;
        let names: Vec<&str> = varied.iter().map(|(varied, _)| &varied.parameter[..]).collect();
        let does = if several { "do" } else { "does" };
        let question = format!("What {does} {} do to short messages?", names.join(", "));
        let lead = format!("{}, once for each value", title(&outcome.config));
        let mut findings = Findings::new(outcome.clone(), question, lead).with_columns(&[]);
        for each in varied {
            let heading = if several { &each.0.parameter[..] } else { "" };
            let plots = CURVES.iter().map(|curve| plot(each, curve, several));
            findings = findings.with(Section::new(heading).with_all(plots).with(table(each)));
        }
        let ratios = (!outcome.ratios.is_empty()).then_some(Part::Ratios);
        let how = "The base is found once for each rate of the links and MTU. Values are equally far apart in the charts. \
                   While one setting is varied, the others have the values below.";
        let findings = findings
            .with(Section::new("How many times slower").with_all(ratios))
            .with(
                Section::new("What was measured")
                    .on_page()
                    .with(Part::Text(definition(ours)))
                    .with(Part::Text(how.to_owned())),
            )
            .with(Section::contenders(outcome).on_page())
            .with(once_more(command));
        Findings { csv_files: self.csv_files(), ..findings }
    }

    /// Returns every run in lines, for spreadsheets: name and content of each file.
    fn csv_files(&self) -> Vec<(String, String)> {
        let groups: Vec<csv::Group<'_>> = self
            .varied
            .iter()
            .flat_map(|(varied, findings)| {
                varied.points.iter().zip(findings).map(|((value, _), findings)| csv::Group {
                    first: vec![&varied.parameter, value],
                    transports: &findings.transports,
                })
            })
            .collect();
        csv::files(&["parameter", "value"], &groups)
    }
}

/// Returns each value as `NAME=VALUE`, with its analysis.
fn points(varied: &[(Varied, Vec<Analysis>)]) -> impl Iterator<Item = (String, &Analysis)> {
    varied.iter().flat_map(|(varied, findings)| {
        let values = varied.points.iter().map(|(value, _)| format!("{}={value}", varied.parameter));
        values.zip(findings)
    })
}

/// Returns the names of all transports, in order of appearance.
fn names(findings: &[Analysis]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in findings.iter().flat_map(|each| &each.transports).map(Transport::row) {
        if !names.contains(&row) {
            names.push(row);
        }
    }
    names
}

/// Plots a figure against the values of a setting. File names include the setting, if there are
/// `several`.
fn plot((varied, findings): &(Varied, Vec<Analysis>), curve: &Curve, several: bool) -> Plot {
    let parameter = &varied.parameter;
    let names = names(findings);
    let line = |name: &String| {
        let points = varied.points.iter().zip(findings).enumerate();
        let points = points.filter_map(|(index, ((value, _), findings))| {
            let transport = findings.transports.iter().find(|each| each.row() == *name)?;
            let spread = transport.spread(curve.figure);
            Some(Point {
                x: index as f64,
                y: spread.median,
                range: Some((spread.min, spread.max)),
                at: format!("{parameter}={value}").into(),
                says: spread_in_words(&spread).into(),
            })
        });
        let points: Vec<Point<'_>> = points.collect();
        let colour = slowdown::colour(names.iter().map(|name| &name[..]), name);
        Line { name: name.clone().into(), colour, stroke: Stroke::Plain, points }
    };
    let lines: Vec<Line<'_>> = names.iter().map(line).collect();
    let x = Axis::new(parameter, Scale::Linear, ticks(varied));
    let name = if several { format!("{parameter}-{}", curve.name) } else { curve.name.to_owned() };
    let heading = Heading { name: &name, title: curve.title, caption: curve.caption };
    Plot::lines(heading, x, (curve.unit, curve.scale), lines)
}

/// Returns ticks at equal distances, whether or not values are numbers, with half a step free at
/// both ends.
fn ticks(varied: &Varied) -> Ticks {
    let labels =
        varied.points.iter().enumerate().map(|(at, (value, _))| (at as f64, value.clone()));
    let (first, last) = ((-0.5, String::new()), (varied.points.len() as f64 - 0.5, String::new()));
    [first].into_iter().chain(labels).chain([last]).collect()
}

/// Returns one line per value and transport.
fn table((varied, findings): &(Varied, Vec<Analysis>)) -> Table {
    let header =
        [&varied.parameter[..], "", "short p50", "short p99", "all p99", "achieved load", "errors"];
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
    let lines = varied.points.iter().zip(findings).flat_map(|((value, _), findings)| {
        findings.transports.iter().map(move |transport| line(value, transport))
    });
    let title = format!("slowdown by {} (otherwise {})", varied.parameter, varied.otherwise);
    Table::new(title, header, lines.collect())
}

/// Returns the common settings of all values, in one line:
/// `w4 at 80 % load, 8 nodes, links of 200 Mbit/s`.
fn title(config: &Map<String, Value>) -> String {
    let number = |name: &str| config.get(name).and_then(Value::as_f64);
    let workload = config.get("workload").and_then(Value::as_str).unwrap_or("messages");
    let load = number("load").map(|load| format!(" at {} % load", short_number(100.0 * load)));
    let nodes = number("nodes").map(|nodes| format!(", {} nodes", short_number(nodes)));
    let link = number("link_mbps").map(|link| format!(", links of {} Mbit/s", short_number(link)));
    [load, nodes, link].into_iter().flatten().fold(workload.to_owned(), |line, part| line + &part)
}

/// Returns the common settings of all values, and the values.
fn config(varied: &[(Varied, Vec<Analysis>)], command: &str) -> Map<String, Value> {
    let first = &varied[0].1[0].outcome.config;
    let same = |name: &str, value: &Value| {
        points(varied).all(|(_, findings)| findings.outcome.config.get(name) == Some(value))
    };
    let common = first.iter().filter(|(name, value)| *name != "command" && same(name, value));
    let mut config: Map<String, Value> =
        common.map(|(name, value)| (name.clone(), value.clone())).collect();
    let sweep = varied.iter().map(|(varied, _)| {
        let values: Vec<&String> = varied.points.iter().map(|(value, _)| value).collect();
        (varied.parameter.clone(), json!({ "values": values, "otherwise": varied.otherwise }))
    });
    config.insert("sweep".to_owned(), Value::Object(sweep.collect()));
    config.insert("command".to_owned(), json!([command]));
    config
}
