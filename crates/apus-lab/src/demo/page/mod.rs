//! How does the demo look in a browser?
//!
//! One file that loads nothing from elsewhere: style sheet and charts are in it, and it looks well in
//! light and in dark.

use minijinja::Environment;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::Findings;
use super::findings::{Curve, OURS};
use crate::chart::{Axis, Chart, Line, Look, Point, Scale, bytes, decades, short_number};
use crate::page::style;
use crate::result::Outcome;
use crate::result::table::{ratio_in_words, short};
use crate::slowdown::Tail;

/// The page with its style sheet.
const TEMPLATE: &str = include_str!("page.html");

/// What the template shows.
#[derive(Serialize)]
struct Page<'a> {
    style: String,
    outcome: &'a Outcome,
    explanation: &'a [String],
    contenders: Vec<Card<'a>>,
    /// The charts, as SVG.
    by_size: String,
    cdf: String,
    sizes: Vec<Size>,
    /// Name and value of each ratio.
    ratios: Vec<(&'a str, String)>,
}

/// What is said about one contender.
#[derive(Serialize)]
struct Card<'a> {
    name: &'a str,
    colour: usize,
    settings: &'a str,
    short_p50: String,
    short_p99: String,
}

/// One line of the table.
#[derive(Serialize)]
struct Size {
    upto: u32,
    count: u64,
    /// Median and 99th percentile of each contender.
    slowdowns: Vec<String>,
}

/// The page.
pub(super) fn render(findings: &Findings) -> String {
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE).expect("a constant template");
    let template = environment.get_template("page.html").expect("added above");
    let page = Page::of(findings);
    template.render(Value::from(Serde(page))).expect("every name in the template is a field")
}

impl<'a> Page<'a> {
    fn of(findings: &'a Findings) -> Self {
        let Findings { outcome, explanation, curves } = findings;
        let card = |(index, curve): (usize, &'a Curve)| Card {
            name: &curve.name,
            colour: colour(curves, index),
            settings: &curve.settings,
            short_p50: short(curve.short.p50),
            short_p99: short(curve.short.p99),
        };
        let groups = curves.first().map_or(&[][..], |curve| &curve.by_size);
        let size = |index: usize| {
            let tails = curves.iter().map(|curve| curve.by_size[index].tail);
            Size {
                upto: groups[index].upto,
                count: groups[index].count,
                slowdowns: tails.flat_map(|tail| [tail.p50, tail.p99].map(short)).collect(),
            }
        };
        let ratios = outcome.ratios.iter();
        Self {
            style: style(),
            outcome,
            explanation,
            contenders: curves.iter().enumerate().map(card).collect(),
            by_size: by_size(curves).svg(),
            cdf: cdf(curves).svg(),
            sizes: (0..groups.len()).map(size).collect(),
            ratios: ratios.map(|(name, ratio)| (&name[..], ratio_in_words(ratio))).collect(),
        }
    }
}

/// Number of a contender's colour: the first one is apus's, whether or not apus is there.
fn colour(curves: &[Curve], index: usize) -> usize {
    if curves[index].name == OURS {
        return 0;
    }
    1 + curves[..index].iter().filter(|curve| curve.name != OURS).count()
}

/// Slowdown against size: p99 as a line, p50 dashed.
fn by_size(curves: &[Curve]) -> Chart<'_> {
    let sizes = curves.iter().flat_map(|curve| &curve.by_size).map(|group| f64::from(group.upto));
    let tails = || curves.iter().flat_map(|curve| &curve.by_size).map(|group| group.tail);
    let slowdowns = tails().flat_map(|Tail { p50, p99 }| [p50, p99]);
    let line = |index: usize, name: &str, of: fn(&Tail) -> f64| {
        let groups = curves[index].by_size.iter().filter(|group| group.count > 0);
        let points = groups.map(|group| {
            let slowdown = of(&group.tail);
            let size = bytes(f64::from(group.upto));
            let contender = &curves[index].name;
            let title = format!("{contender}, up to {size}: {name} {}", short(slowdown)).into();
            Point { x: f64::from(group.upto), y: slowdown, title }
        });
        let look = if name == "p50" { Look::Faint } else { Look::Plain };
        Line { colour: colour(curves, index), look, points: points.collect() }
    };
    Chart {
        description: "Slowdown against message size, median and 99th percentile of each contender",
        x: Axis { label: "message size", scale: Scale::Logarithmic, ticks: decades(sizes, bytes) },
        y: Axis {
            label: "slowdown",
            scale: Scale::Logarithmic,
            ticks: decades(slowdowns, short_number),
        },
        lines: (0..curves.len())
            .flat_map(|index| {
                [line(index, "p50", |tail| tail.p50), line(index, "p99", |tail| tail.p99)]
            })
            .collect(),
    }
}

/// Which share of the short messages took how long.
fn cdf(curves: &[Curve]) -> Chart<'_> {
    let latencies = curves.iter().flat_map(|curve| &curve.cdf).map(|&(latency, _)| latency);
    let line = |(index, curve): (usize, &Curve)| {
        let points = curve.cdf.iter().map(|&(latency, share)| {
            let percent = short_number(share * 100.0);
            let title = format!("{}: {percent} % within {}", curve.name, time(latency)).into();
            Point { x: latency, y: share, title }
        });
        Line { colour: colour(curves, index), look: Look::Plain, points: points.collect() }
    };
    let percentiles =
        [(0.0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")];
    Chart {
        description: "Share of the short messages that took no longer than a time",
        x: Axis {
            label: "round trip time of short messages",
            scale: Scale::Logarithmic,
            ticks: decades(latencies, time),
        },
        y: Axis {
            label: "share of messages",
            scale: Scale::Nines,
            ticks: percentiles
                .map(|(share, label)| (share, label.to_owned()))
                .into_iter()
                .chain([(0.9995, String::new())])
                .collect(),
        },
        lines: curves.iter().enumerate().map(line).collect(),
    }
}

/// `5 us`, `20 ms`, of microseconds.
fn time(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "s"),
        value if value >= 1e3 => (value / 1e3, "ms"),
        value => (value, "us"),
    };
    format!("{} {unit}", short_number(value))
}
