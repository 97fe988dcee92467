//! The result of the demo: rows, ratios, charts and explanations.

use serde_json::{Map, Value, json};

use super::options::Options;
use super::phases::LIMIT;
use crate::loopback::{self, LoadResult};
use crate::slowdown::{self, Curve, OURS, Percentile, Scale, Summary};
use apus_report::experiment::config;
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::{Figure, Outcome, Ratio, Row, named, rounded, short};
use apus_testbed::error::Error;

/// The measurements of one contender.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) settings: String,
    /// Requests per second that it completes at most.
    pub(super) capacity: f64,
    /// The result of each run, with its number.
    pub(super) runs: Vec<(usize, LoadResult)>,
}

/// Returns the result of a load of `rate` requests per second.
pub(super) fn findings(
    options: &Options,
    rate: f64,
    scale: &Scale,
    measured: &[Measured],
) -> Result<Findings, Error> {
    let workload = options.sizes.check()?;
    let slowest = slowest(measured);
    let load = rate / slowest.capacity;
    let settings = measured.iter().map(|each| (each.name.to_owned(), json!(each.settings)));
    let own = [
        ("workload", json!(options.sizes.workload)),
        ("truncate", json!(options.sizes.truncate)),
        ("load", json!(rounded(load))),
        ("rate_krps", json!(rounded(rate / 1e3))),
        ("capacity_krps", json!(rounded(slowest.capacity / 1e3))),
        ("capacity_of", json!(slowest.name)),
        ("outstanding", json!(LIMIT)),
    ];
    let mut config: Map<String, Value> =
        named(own).into_iter().chain(config(&options.repetition)).collect();
    config.insert("settings".to_owned(), Value::Object(settings.collect()));
    let mut outcome = Outcome::new("demo", config);
    let curves: Vec<Curve> = measured.iter().map(Measured::curve).collect();
    outcome.rows =
        measured.iter().zip(&curves).map(|(each, curve)| each.row(curve, load)).collect();
    outcome.ratios = ratios(measured);
    outcome.notes = measured.iter().filter_map(Measured::trouble).collect();
    let gbps = slowest.capacity * workload.sizes().mean() * 8.0 / 1e9;
    let explanation = vec![
            format!(
                "Messages: {workload}, mean {:.0} bytes, each echoed. Requests are due at random \
                 instants (Poisson) whether or not earlier ones are done; {LIMIT} are outstanding at \
                 most, and the latency of a request that waits for that includes the wait.",
                workload.sizes().mean(),
            ),
            format!(
                "Load: 100 % is {:.0} requests per second ({} Gbit/s of payload in each direction), \
                 what the slowest contender ({}) completes when {LIMIT} are always outstanding. \
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
            "Client and server are processes of their own, each on its core. Every contender carries the same requests; \
             they take turns, and another one begins each run."
                .to_owned(),
            "Path: loopback of one machine, where the processors are the bottleneck and no link is. \
             What is compared is how much work each transport is, and whether short messages wait \
             behind long ones inside the hosts. There are no queues in switches here, which apus is \
             made to keep short."
                .to_owned(),
        ];
    let lead = format!(
        "{} at {:.0} % load over loopback: 99th percentile of the slowdown of short messages, median of {} runs",
        options.sizes.workload,
        100.0 * load,
        options.repetition.runs
    );
    let ratios = (!outcome.ratios.is_empty()).then_some(Part::Ratios);
    let findings = Findings::new(outcome, "How long do messages take under load?", lead)
        .with_columns(&["short_p50", "short_p99", "short_p99_us", "all_p99", "errors"])
        .with(Section::new("").with(slowdown::by_size(&curves)).with(slowdown::cdf(&curves)))
        .with(
            Section::new("The same in numbers")
                .with(slowdown::table(&curves, &[Percentile::P50, Percentile::P99]))
                .with_all(ratios),
        )
        .with(Section::new("What was measured").with(Part::List(explanation)));
    let contenders = Section::contenders(&findings.outcome).on_page();
    let findings = findings.with(contenders);
    Ok(Findings { cards: slowdown::cards(&curves), ..findings })
}

/// Returns the contender that completes the fewest requests per second.
fn slowest(measured: &[Measured]) -> &Measured {
    let by_capacity = |a: &&Measured, b: &&Measured| a.capacity.total_cmp(&b.capacity);
    measured.iter().min_by(by_capacity).expect("a contender takes part")
}

/// Returns every other contender's short messages divided by ours.
fn ratios(measured: &[Measured]) -> Vec<(String, Ratio)> {
    let Some(ours) = measured.iter().find(|each| each.name == OURS) else { return Vec::new() };
    let mut ratios = Vec::new();
    for other in measured.iter().filter(|each| each.name != OURS) {
        let mut compare = |name: &str, figure: fn(&LoadResult) -> f64| {
            let ratio = Ratio::paired(&other.over_runs(figure), &ours.over_runs(figure));
            ratios.extend(ratio.map(|ratio| (format!("{name} {}/{OURS}", other.name), ratio)));
        };
        compare("short_p99", |run| run.summary.short.p99);
        compare("short_p50", |run| run.summary.short.p50);
    }
    ratios
}

impl Measured {
    /// Returns one value per run, with the number of the run.
    fn over_runs(&self, figure: impl Fn(&LoadResult) -> f64) -> Vec<(usize, f64)> {
        self.runs.iter().map(|(run, result)| (*run, figure(result))).collect()
    }

    fn curve(&self) -> Curve {
        let runs: Vec<&Summary> = self.runs.iter().map(|(_, run)| &run.summary).collect();
        Curve::of(&self.name, &runs)
    }

    fn errors(&self) -> u64 {
        self.runs.iter().map(|(_, run)| run.errors).sum()
    }

    fn row(&self, curve: &Curve, load: f64) -> Row {
        let runs: &Vec<&LoadResult> = &self.runs.iter().map(|(_, run)| run).collect();
        Row::new(&self.name)
            .with_spread("short_p50", runs, |run| run.summary.short.p50)
            .with_spread("short_p99", runs, |run| run.summary.short.p99)
            .with_spread("short_p50_us", runs, |run| run.summary.short_us.p50)
            .with_spread("short_p99_us", runs, |run| run.summary.short_us.p99)
            .with_spread("all_p50", runs, |run| run.summary.all.p50)
            .with_spread("all_p99", runs, |run| run.summary.all.p99)
            .with_spread("mean_by_bytes", runs, |run| run.summary.mean_by_bytes)
            .with("offered_load", Figure::Detail(json!(rounded(load))))
            .with_spread("achieved_load", runs, |run| run.kept_up * load)
            .with("capacity_krps", Figure::Detail(json!(rounded(self.capacity / 1e3))))
            .with_sum("messages", runs, |run| run.summary.messages)
            .with("errors", Figure::Count(self.errors()))
            .with("by_size", Figure::Detail(json!(curve.by_size)))
    }

    /// Returns what a reader has to know about this contender's runs, if they went wrong.
    fn trouble(&self) -> Option<String> {
        let kept_up = self.runs.iter().map(|(_, run)| run.kept_up).fold(1.0, f64::min);
        loopback::trouble(&self.name, self.errors(), kept_up)
    }
}
