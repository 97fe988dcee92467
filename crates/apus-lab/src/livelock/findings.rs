//! What did the livelock experiment find?

use std::fmt;

use serde_json::{Value, json};

use super::Options;
use super::plots::plots;
use super::sweep::Curve;
use super::words::sentences;
use crate::chart::Plot;
use crate::page;
use crate::result::{Figure, Outcome, Ratio, Row, Table, rounded, short, table};
use crate::stats::Spread;

/// The result, for people and machines.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Rows, ratios, and what is to be known about them.
    pub outcome: Outcome,
    /// What is seen, in words.
    pub sentences: Vec<String>,
    curves: Table,
    plots: Vec<Plot>,
}

impl Findings {
    pub(super) fn new(options: &Options, curves: &[Curve], neighbours: Option<String>) -> Self {
        let mut outcome = Outcome::new("livelock", options.config());
        outcome.rows = curves.iter().map(row).collect();
        for curve in curves {
            let ratio = Ratio::over(&curve.at_most(), &curve.peaks());
            outcome.ratios.extend(ratio.map(|ratio| (format!("{}@max/peak", curve.case), ratio)));
        }
        outcome.notes.extend(neighbours);
        Self {
            outcome,
            sentences: sentences(curves),
            curves: by_rate(curves),
            plots: plots(curves),
        }
    }

    /// A page with everything, which needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        let said = Table {
            title: "what is seen".to_owned(),
            header: vec![String::new()],
            lines: self.sentences.iter().map(|sentence| vec![sentence.clone()]).collect(),
        };
        let ratios = table::ratios(&self.outcome.ratios);
        let title = "What comes out of a router while more and more goes in?";
        page::of_plots(title, &self.plots, &[said, self.curves.clone(), ratios])
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
        let columns = ["mlfrr_kpps", "peak_kpps", "at_max_kpps", "user_share_at_max"];
        let (curves, said) = (self.curves.to_string(), self.sentences.join("\n"));
        table::write(&self.outcome, &columns, [&curves, &said], formatter)
    }
}

fn row(curve: &Curve) -> Row {
    let kpps = |rates: &[f64]| {
        let rates: Vec<f64> = rates.iter().map(|rate| rate / 1e3).collect();
        Figure::Spread(Spread::over(&rates))
    };
    let shares: Vec<f64> =
        curve.runs.iter().filter_map(|run| run.last()).map(|point| point.user_share).collect();
    let points: Vec<Value> = (0..curve.medians().len()).map(|rate| point(curve, rate)).collect();
    Row::new(&curve.case.to_string())
        .with("curve", Figure::Detail(json!(points)))
        .with("mlfrr_kpps", Figure::Spread(Spread::over(&[curve.loss_free / 1e3])))
        .with("peak_kpps", kpps(&curve.peaks()))
        .with("at_max_kpps", kpps(&curve.at_most()))
        .with("user_share_at_max", Figure::Spread(Spread::over(&shares)))
}

/// One point, with what became of the packets in the run of the median.
fn point(curve: &Curve, rate: usize) -> Value {
    let median = curve.medians()[rate];
    let outputs: Vec<f64> = curve.runs.iter().map(|run| run[rate].forwarded / 1e3).collect();
    let shares: Vec<f64> = curve.runs.iter().map(|run| run[rate].user_share).collect();
    let output = Spread::over(&outputs);
    let mut value = json!({
        "offered_kpps": rounded(median.offered / 1e3),
        "forwarded_kpps": rounded(output.median),
        "forwarded_kpps_min": rounded(output.min),
        "forwarded_kpps_max": rounded(output.max),
        "user_share": rounded(Spread::over(&shares).median),
        "packets": median.packets,
        "counters": median.counters,
    });
    if let Some(seen) = median.seen {
        value["monitor_share"] = json!(rounded(seen as f64 / median.packets.max(1) as f64));
    }
    value
}

/// Output by input: a line for each rate, a column for each mode.
fn by_rate(curves: &[Curve]) -> Table {
    let medians: Vec<_> = curves.iter().map(Curve::medians).collect();
    let rates = medians.iter().map(Vec::len).max().unwrap_or(0);
    let names = curves.iter().map(|curve| curve.case.to_string());
    let line = |rate: usize| {
        let offered: Vec<f64> =
            medians.iter().filter_map(|each| each.get(rate)).map(|it| it.offered / 1e3).collect();
        let cells = medians.iter().map(|each| {
            each.get(rate).map_or_else(String::new, |point| short(point.forwarded / 1e3))
        });
        [short(Spread::over(&offered).median)].into_iter().chain(cells).collect()
    };
    Table {
        title: "thousands of packets per second that come out, by those offered".to_owned(),
        header: ["offered".to_owned()].into_iter().chain(names).collect(),
        lines: (0..rates).map(line).collect(),
    }
}
