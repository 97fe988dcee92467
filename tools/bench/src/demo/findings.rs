//! What did the demo find out?

use std::fmt;

use serde_json::{Map, Value, json};

use super::options::Options;
use super::page;
use super::phases::LIMIT;
use super::sides::{GRACE, LoadResult};
use crate::slowdown::{self, Curve, OURS, Percentile, Scale, Summary};
use apus_report::result::{Figure, Outcome, Ratio, Row, Table, rounded, short, table};
use apus_report::stats::Spread;
use apus_testbed::error::Error;

/// What was measured of one contender.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) settings: String,
    /// Requests per second that it completes at most.
    pub(super) capacity: f64,
    /// What came of each run.
    pub(super) runs: Vec<LoadResult>,
}

/// The result of the demo: the outcome as every experiment has one, and what is drawn from it.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Rows, ratios and settings.
    pub outcome: Outcome,
    /// What the figures mean, in sentences.
    pub(super) explanation: Vec<String>,
    /// One for each contender.
    pub(super) curves: Vec<Curve>,
    /// How each contender is set up, in the same order.
    pub(super) settings: Vec<String>,
}

/// Below this share of the requests that were due, a contender did not keep up: its queue grew for as
/// long as the load lasted. Ours: what is under way at the end is far less than a hundredth.
const KEPT_UP: f64 = 0.97;

impl Findings {
    pub(super) fn new(
        options: &Options,
        rate: f64,
        scale: &Scale,
        measured: &[Measured],
    ) -> Result<Self, Error> {
        let workload = options.workload()?;
        let slowest = slowest(measured);
        let load = rate / slowest.capacity;
        let settings = measured.iter().map(|each| (each.name.to_owned(), json!(each.settings)));
        let config = [
            ("workload", json!(options.workload)),
            ("truncate", json!(options.truncate)),
            ("load", json!(rounded(load))),
            ("rate_krps", json!(rounded(rate / 1e3))),
            ("capacity_krps", json!(rounded(slowest.capacity / 1e3))),
            ("capacity_of", json!(slowest.name)),
            ("outstanding", json!(LIMIT)),
            ("seconds", json!(options.seconds)),
            ("runs", json!(options.runs)),
            ("seed", json!(options.seed)),
            ("poll", json!(options.poll)),
            ("settings", Value::Object(settings.collect())),
        ];
        let config = config.map(|(name, value)| (name.to_owned(), value));
        let mut outcome = Outcome::new("demo", config.into_iter().collect::<Map<_, _>>());
        let curves: Vec<Curve> = measured.iter().map(Measured::curve).collect();
        outcome.rows =
            measured.iter().zip(&curves).map(|(each, curve)| each.row(curve, load)).collect();
        outcome.ratios = ratios(measured);
        outcome.notes = measured.iter().filter_map(Measured::trouble).collect();
        let gbps = slowest.capacity * workload.sizes().mean() * 8.0 / 1e9;
        let explanation = vec![
            format!(
                "Messages: {workload}, mean {:.0} bytes, each echoed. Requests are due at random \
                 instants (Poisson) whether or not earlier ones are done; {LIMIT} are under way at \
                 most, and the time of one that has to wait for that runs, too.",
                workload.sizes().mean(),
            ),
            format!(
                "Load: 100 % is {:.0} requests per second ({} Gbit/s of payload in each direction), \
                 what the slowest contender ({}) completes when {LIMIT} are always under way. \
                 Offered: {:.0} % of it.",
                slowest.capacity,
                short(gbps),
                slowest.name,
                load * 100.0,
            ),
            format!(
                "Slowdown: the time from the instant a request is due to its complete reply, divided \
                 by the best time in which any contender carried a message of that size when nothing \
                 else was running. Short messages are the smaller half, up to {} bytes.",
                scale.short,
            ),
            "Path: loopback of one machine, where the processors are the bottleneck and no link is. \
             What is compared is how much work each transport is, and whether short messages wait \
             behind long ones inside the hosts. There are no queues in switches here, which apus is \
             made to keep short."
                .to_owned(),
        ];
        let settings = measured.iter().map(|each| each.settings.clone()).collect();
        Ok(Self { outcome, explanation, curves, settings })
    }

    /// A page that shows everything, for a browser; it loads nothing from elsewhere.
    #[must_use]
    pub fn html(&self) -> String {
        page::render(self)
    }

    /// Slowdown by size.
    pub(super) fn by_size(&self) -> Table {
        slowdown::table(&self.curves, &[Percentile::P50, Percentile::P99])
    }
}

/// The table for people.
impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLUMNS: [&str; 5] = ["short_p50", "short_p99", "short_p99_us", "all_p99", "errors"];
        let explanation = self.explanation.join("\n");
        let by_size = format!("{explanation}\n\n{}", self.by_size());
        table::write(&self.outcome, &COLUMNS, [&by_size, ""], formatter)
    }
}

/// Whoever completes the fewest requests.
fn slowest(measured: &[Measured]) -> &Measured {
    let by_capacity = |a: &&Measured, b: &&Measured| a.capacity.total_cmp(&b.capacity);
    measured.iter().min_by(by_capacity).expect("somebody takes part")
}

/// Every other contender's short messages divided by ours.
fn ratios(measured: &[Measured]) -> Vec<(String, Ratio)> {
    let Some(ours) = measured.iter().find(|each| each.name == OURS) else { return Vec::new() };
    let mut ratios = Vec::new();
    for other in measured.iter().filter(|each| each.name != OURS) {
        let mut compare = |name: &str, figure: fn(&LoadResult) -> f64| {
            let ratio = Ratio::over(&other.over_runs(figure), &ours.over_runs(figure));
            ratios.extend(ratio.map(|ratio| (format!("{name} {}/{OURS}", other.name), ratio)));
        };
        compare("short_p99", |run| run.summary.short.p99);
        compare("short_p50", |run| run.summary.short.p50);
    }
    ratios
}

impl Measured {
    /// One value per run.
    fn over_runs(&self, figure: impl Fn(&LoadResult) -> f64) -> Vec<f64> {
        self.runs.iter().map(figure).collect()
    }

    fn curve(&self) -> Curve {
        let runs: Vec<&Summary> = self.runs.iter().map(|run| &run.summary).collect();
        Curve::of(&self.name, &runs)
    }

    fn errors(&self) -> u64 {
        self.runs.iter().map(|run| run.errors).sum()
    }

    fn row(&self, curve: &Curve, load: f64) -> Row {
        let spread =
            |figure: fn(&LoadResult) -> f64| Figure::Spread(Spread::over(&self.over_runs(figure)));
        let achieved: Vec<f64> = self.over_runs(|run| run.kept_up * load);
        let messages = self.runs.iter().map(|run| run.summary.messages).sum();
        Row::new(&self.name)
            .with("short_p50", spread(|run| run.summary.short.p50))
            .with("short_p99", spread(|run| run.summary.short.p99))
            .with("short_p50_us", spread(|run| run.summary.short_us.p50))
            .with("short_p99_us", spread(|run| run.summary.short_us.p99))
            .with("all_p50", spread(|run| run.summary.all.p50))
            .with("all_p99", spread(|run| run.summary.all.p99))
            .with("mean_by_bytes", spread(|run| run.summary.mean_by_bytes))
            .with("offered_load", Figure::Detail(json!(rounded(load))))
            .with("achieved_load", Figure::Spread(Spread::over(&achieved)))
            .with("capacity_krps", Figure::Detail(json!(rounded(self.capacity / 1e3))))
            .with("messages", Figure::Count(messages))
            .with("errors", Figure::Count(self.errors()))
            .with("by_size", Figure::Detail(json!(curve.by_size)))
    }

    /// What a reader has to know about this contender's runs, if they went wrong.
    fn trouble(&self) -> Option<String> {
        let kept_up = Spread::over(&self.over_runs(|run| run.kept_up)).min;
        let errors = self.errors();
        let name = &self.name;
        if errors > 0 {
            let grace = GRACE.as_secs();
            Some(format!(
                "{errors} requests of {name} were not answered within {grace} s of the load's end"
            ))
        } else if kept_up < KEPT_UP {
            Some(format!(
                "{name} completed only {:.0} % of what was due in one run: its queue grew, and its \
                 slowdown depends on how long the run was",
                kept_up * 100.0
            ))
        } else {
            None
        }
    }
}
