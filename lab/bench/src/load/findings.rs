//! The result of the load experiment: rows, ratios, charts and explanations.

use serde_json::{Map, Value, json};

use super::contender::{Contender, Recoveries};
use super::options::LoadOptions;
use crate::loopback::{LoadPhase, LoadResult};
use crate::slowdown::{self, Curve, OURS, Percentile};
use apus_report::experiment::{config as repetition, name};
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::{Outcome, Ratio, Table, named, rounded, short};
use apus_testbed::error::Error;

/// Options, and values derived from them.
pub(super) struct Setup<'a> {
    pub(super) options: &'a LoadOptions,
    /// The contender that defines the full load, and its capacity.
    pub(super) base: (String, f64),
    pub(super) load: LoadPhase,
}

/// Columns on a terminal.
const COLUMNS: &[&str] = &[
    "capacity_krps",
    "completed",
    "short_p50",
    "short_p99",
    "short_p99_us",
    "resent_share",
    "needless_resends",
    "errors",
];

/// Returns the result.
pub(super) fn findings(setup: &Setup<'_>, contenders: &[Contender]) -> Result<Findings, Error> {
    let Setup { options, load, .. } = setup;
    let curves: Vec<Curve> = contenders.iter().map(Contender::curve).collect();
    let recoveries: Vec<Option<Recoveries>> =
        contenders.iter().map(|each| each.recoveries(load, options.disturbance())).collect();
    let mut outcome = Outcome::new("load", setup.config(contenders));
    let rows = contenders.iter().zip(&curves).zip(&recoveries);
    outcome.rows =
        rows.map(|((each, curve), recovery)| each.row(curve, load, recovery.as_ref())).collect();
    outcome.ratios = ratios(contenders);
    outcome.notes = contenders.iter().filter_map(Contender::trouble).collect();
    outcome.notes.extend(contenders.iter().filter_map(Contender::overflow));
    let ratios = (!outcome.ratios.is_empty()).then_some(Part::Ratios);
    let findings =
        Findings::new(outcome, "Does it last when the processors are busy?", setup.lead())
            .with_columns(COLUMNS)
            .with(
                Section::new("")
                    .with_all(hold(contenders))
                    .with_all(recovery(contenders, &recoveries))
                    .with(slowdown::by_size(&curves))
                    .with(slowdown::cdf(&curves)),
            )
            .with(
                Section::new("The same in numbers")
                    .with(slowdown::table(&curves, &[Percentile::P50, Percentile::P99]))
                    .with_all(ratios),
            )
            .with(Section::new("What was measured").with(Part::List(setup.explanation()?)));
    let contenders = Section::contenders(&findings.outcome).on_page();
    let findings = findings.with(contenders);
    Ok(Findings { cards: slowdown::cards(&curves), ..findings })
}

impl Setup<'_> {
    /// Returns the options and the values derived from them.
    fn config(&self, contenders: &[Contender]) -> Map<String, Value> {
        let Self { options, base: (base, capacity), load } = self;
        let settings = contenders.iter().map(|each| (each.name.clone(), json!(each.settings)));
        let own = [
            ("workload", json!(options.sizes.workload)),
            ("truncate", json!(options.sizes.truncate)),
            ("path", json!(name(&options.path))),
            ("load", json!(rounded(load.rate / capacity))),
            ("rate_krps", json!(rounded(load.rate / 1e3))),
            ("capacity_krps", json!(rounded(capacity / 1e3))),
            ("capacity_of", json!(base)),
            ("outstanding", json!(options.outstanding)),
        ];
        let asked = [
            ("hold", options.hold.map(|seconds| json!(seconds))),
            ("stall_ms", options.stall.map(|stall| json!(rounded(stall.as_secs_f64() * 1e3)))),
            ("burst", options.burst.map(|burst| json!(burst.to_string()))),
        ];
        let asked = asked.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut config = named(own.into_iter().chain(asked));
        config.extend(repetition(&options.repetition));
        config.insert("settings".to_owned(), Value::Object(settings.collect()));
        config
    }

    /// Returns the paragraph below the heading.
    fn lead(&self) -> String {
        let Self { options, base: (base, capacity), load } = self;
        format!(
            "{} at {:.0} % of the capacity of {base} over loopback: 99th percentile of the slowdown of short \
             messages, median of {} runs",
            options.sizes.workload,
            100.0 * load.rate / capacity,
            options.repetition.runs
        )
    }

    /// Returns an explanation of the figures.
    fn explanation(&self) -> Result<Vec<String>, Error> {
        let Self { options, base: (base, capacity), load } = self;
        let workload = options.sizes.check()?;
        let mean = workload.sizes().mean();
        let outstanding = options.outstanding;
        let mut lines = vec![
            format!(
                "Messages: {workload}, mean {mean:.0} bytes, each echoed. Requests are due at random instants (Poisson) \
                 whether or not earlier ones are done. With a connection for each request there are {outstanding} connections, \
                 and the latency of a request that waits for one includes the wait.",
            ),
            format!(
                "Capacity: the requests per second that are completed when {outstanding} are always outstanding. \
                 Offered to every contender: {:.0} requests per second, {:.0} % of the capacity of {base} ({} Gbit/s of \
                 payload in each direction).",
                load.rate,
                100.0 * load.rate / capacity,
                short(load.rate * mean * 8.0 / 1e9),
            ),
            "Completed: share of the requests that were due that was completed before the load ended.".to_owned(),
            format!(
                "Slowdown: the time from the instant a request is due to its complete reply, divided by the best time in \
                 which any contender carried a message of that size when nothing else was running. Short messages are \
                 the smaller half, up to {} bytes.",
                load.scale.short,
            ),
            "Resent share: payload bytes that both sides of apus sent again, of the bytes of all DATA packets. Needless \
             resends: retransmitted DATA packets that the receiver had no use for. Warm-up included."
                .to_owned(),
        ];
        if options.disturbance().is_some() {
            lines.push(format!(
                "Recovery: from the end of the disturbance to the first window of {} ms whose short messages, counted \
                 where they were due, have a median of at most 1.5 times that of before, and so has most of what \
                 follows. The bound is 100 ms and 1.5 times what the spare capacity needs for the requests that have \
                 queued. All other figures of these runs include the disturbance.",
                load.window.unwrap_or_default().as_millis(),
            ));
        }
        lines.push(
            "Path: loopback of one machine, UDP without shared memory, client and server each a process on its core. The \
             processors are the bottleneck and no link is."
                .to_owned(),
        );
        Ok(lines)
    }
}

/// Returns ratios to apus of every other contender: its short messages divided by those of apus,
/// and the capacity of apus divided by its capacity.
fn ratios(contenders: &[Contender]) -> Vec<(String, Ratio)> {
    let Some(ours) = contenders.iter().find(|each| each.name == OURS) else { return Vec::new() };
    let mut ratios = Vec::new();
    for other in contenders.iter().filter(|each| each.name != OURS) {
        let name = &other.name;
        let mut compare = |what: String, dividend: &[(usize, f64)], divisor: &[(usize, f64)]| {
            ratios.extend(Ratio::paired(dividend, divisor).map(|ratio| (what, ratio)));
        };
        let mut slowdown = |figure: &str, of: fn(&LoadResult) -> f64| {
            let what = format!("{figure} {name}/{OURS}");
            compare(what, &other.over_loads(of), &ours.over_loads(of));
        };
        slowdown("short_p99", |run| run.summary.short.p99);
        slowdown("short_p50", |run| run.summary.short.p50);
        compare(format!("capacity {OURS}/{name}"), &ours.capacities(), &other.capacities());
    }
    ratios
}

/// Returns the contenders' steadiness with all requests outstanding, if requested.
fn hold(contenders: &[Contender]) -> Option<Table> {
    let line = |each: &Contender| {
        let [median, least] = each.hold_in_words()?;
        Some(vec![each.name.clone(), median, least])
    };
    let lines: Vec<Vec<String>> = contenders.iter().filter_map(line).collect();
    let header = ["", "thousand requests in the median second", "worst second / median second"];
    let header = header.map(str::to_owned);
    (!lines.is_empty()).then(|| Table::new("all requests outstanding", header, lines))
}

/// Returns the recoveries, if a disturbance was requested.
fn recovery(contenders: &[Contender], recoveries: &[Option<Recoveries>]) -> Option<Table> {
    let line = |(each, found): (&Contender, &Option<Recoveries>)| {
        let found = found.as_ref()?;
        let or = |time: Option<f64>, absent: &str| time.map_or_else(|| absent.to_owned(), short);
        let (median, max) = found.median_and_max();
        Some(vec![
            each.name.clone(),
            or(found.before_us(), "nothing completed"),
            or(median, "not within the run"),
            or(max, "not within the run"),
            or(found.bound_ms(), "no spare capacity"),
            format!("{} of {}", found.recovered(), each.loads.len()),
        ])
    };
    let lines: Vec<Vec<String>> = contenders.iter().zip(recoveries).filter_map(line).collect();
    let header = ["", "p50 before, us", "recovery ms", "longest ms", "bound ms", "runs recovered"];
    let header = header.map(str::to_owned);
    (!lines.is_empty()).then(|| Table::new("recovery after the disturbance", header, lines))
}
