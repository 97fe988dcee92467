//! What did the livelock experiment find?

use std::fmt;

use serde_json::{Value, json};

use super::page;
use super::plots::plots;
use super::sweep::Curve;
use super::words::sentences;
use super::{Mode, Options};
use crate::chart::Plot;
use crate::result::table::{self, spread_in_words};
use crate::result::{Figure, Outcome, Ratio, Row, Table, rounded, short};
use crate::stats::Spread;

/// The result, for people and machines.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Rows, ratios, and what is to be known about them.
    pub outcome: Outcome,
    /// What is seen, in words.
    pub sentences: Vec<String>,
    pub(super) modes: Vec<Mode>,
    pub(super) rates: Table,
    /// Without the filter and with it, as far as that was measured.
    pub(super) curves: Vec<Table>,
    pub(super) plots: Vec<Plot>,
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
            modes: options.modes.clone(),
            rates: rates(curves),
            curves: [false, true]
                .into_iter()
                .filter_map(|filter| by_rate(curves, filter))
                .collect(),
            plots: plots(curves),
        }
    }

    /// A page with everything, which needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        page::render(self)
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
        let curves: Vec<String> = self.curves.iter().map(Table::to_string).collect();
        let (curves, said) = (curves.join("\n\n"), self.sentences.join("\n"));
        table::write(&self.outcome, &columns, [&curves, &said], formatter)
    }
}

fn row(curve: &Curve) -> Row {
    let kpps = |rates: &[f64]| Figure::Spread(kpps(rates));
    let points: Vec<Value> = (0..curve.medians().len()).map(|rate| point(curve, rate)).collect();
    Row::new(&curve.case.to_string())
        .with("curve", Figure::Detail(json!(points)))
        .with("mlfrr_kpps", Figure::Spread(Spread::over(&[curve.loss_free / 1e3])))
        .with("peak_kpps", kpps(&curve.peaks()))
        .with("at_max_kpps", kpps(&curve.at_most()))
        .with("user_share_at_max", Figure::Spread(left_at_most(curve)))
}

/// Thousands of packets per second.
fn kpps(rates: &[f64]) -> Spread {
    let rates: Vec<f64> = rates.iter().map(|rate| rate / 1e3).collect();
    Spread::over(&rates)
}

/// Share of the core that programs have at the highest rate.
fn left_at_most(curve: &Curve) -> Spread {
    let last = curve.runs.iter().filter_map(|run| run.last());
    let shares: Vec<f64> = last.map(|point| point.user_share).collect();
    Spread::over(&shares)
}

/// What each mode carries.
fn rates(curves: &[Curve]) -> Table {
    let header = ["", "MLFRR", "peak", "at the highest rate", "share of the core left then"];
    let line = |curve: &Curve| {
        let spreads = [kpps(&curve.peaks()), kpps(&curve.at_most()), left_at_most(curve)];
        let [peak, at_most, left] = spreads.map(|spread| spread_in_words(&spread));
        vec![curve.case.to_string(), short(curve.loss_free / 1e3), peak, at_most, left]
    };
    Table {
        title: "what each mode carries".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        lines: curves.iter().map(line).collect(),
    }
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

/// Output by input, with the filter or without: a line for each rate, a column for each mode.
fn by_rate(curves: &[Curve], filter: bool) -> Option<Table> {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| curve.case.filter == filter).collect();
    let medians: Vec<_> = curves.iter().map(|curve| curve.medians()).collect();
    let rates = medians.iter().map(Vec::len).max().unwrap_or(0);
    let names = curves.iter().map(|curve| curve.case.mode.to_string());
    let line = |rate: usize| {
        let offered: Vec<f64> =
            medians.iter().filter_map(|each| each.get(rate)).map(|it| it.offered / 1e3).collect();
        let cells = medians.iter().map(|each| {
            each.get(rate).map_or_else(String::new, |point| short(point.forwarded / 1e3))
        });
        [short(Spread::over(&offered).median)].into_iter().chain(cells).collect()
    };
    let with = if filter { "with" } else { "without" };
    (!curves.is_empty()).then(|| Table {
        title: format!(
            "thousands of packets per second that come out, by those offered, {with} the filter"
        ),
        header: ["offered".to_owned()].into_iter().chain(names).collect(),
        lines: (0..rates).map(line).collect(),
    })
}
