//! Rows, ratios, comparisons and notes of a cluster.

use std::collections::BTreeMap;

use serde_json::json;

use super::input::{Measured, Run, Settings, Transport};
use super::kill;
use crate::cluster::{IDLE, LevelLoad};
use crate::slowdown::{Curve, OURS};
use apus_report::result::{Comparison, Figure, Ratio, Row, rounded};
use apus_report::stats::Spread;

/// Below this share of the offered load, a transport did not keep up: its queue grew throughout the
/// run. Chosen by us: far fewer requests are outstanding at the end.
const KEPT_UP: f64 = 0.97;

/// Permitted latency of a message of mean length, in multiples of its time on an idle link. Chosen
/// by us: long messages take half of this at 80 % load. A short run ends with many messages in
/// flight, and that alone is no growing queue.
const ON_ITS_WAY: f64 = 4.0;

/// Returns one transport's row.
pub(super) fn row(transport: &Transport, curve: &Curve) -> Row {
    let spread = |figure: fn(&Run) -> f64| Figure::Spread(transport.spread(figure));
    let known = |spread: Option<Spread>| spread.map(Figure::Spread);
    let offered = rounded(transport.spread(|run| run.offered_load).median);
    let queue = |of: fn(&crate::cluster::SwitchLoad) -> f64| {
        known(transport.spread_of(|run| run.switch.as_ref().map(|switch| of(switch) / 1e3)))
    };
    let mut row = Row::new(&transport.row())
        .with("short_p50", spread(|run| run.summary.short.p50))
        .with("short_p99", spread(|run| run.summary.short.p99))
        .with("short_p999", spread(|run| run.summary.short.p999))
        .with("short_p50_us", spread(|run| run.summary.short_us.p50))
        .with("short_p99_us", spread(|run| run.summary.short_us.p99))
        .with("all_p50", spread(|run| run.summary.all.p50))
        .with("all_p99", spread(|run| run.summary.all.p99))
        .with("mean_by_bytes", spread(|run| run.summary.mean_by_bytes))
        .with("offered_load", Figure::Detail(json!(offered)))
        .with("achieved_load", spread(|run| run.achieved_load))
        .with("throughput_mbps", spread(|run| run.throughput / 1e6))
        .with("cpu_s_per_gb", spread(|run| run.cpu_per_gb))
        .with("late_p99_us", spread(|run| run.late_p99_us))
        .with_known("idle", known(transport.spread_of(|run| run.idle)))
        .with_known("queue_mean_kb", queue(|switch| switch.queue_mean))
        .with_known("queue_max_kb", queue(|switch| switch.queue_max as f64))
        .with(
            "messages",
            Figure::Count(transport.runs.iter().map(|run| run.summary.messages).sum()),
        )
        .with("errors", Figure::Count(transport.errors()))
        .with("beside", Figure::Detail(json!(transport.beside)))
        .with("by_size", Figure::Detail(json!(curve.by_size)))
        .with("counters", Figure::Detail(json!(counters(transport))))
        .with_known("levels", levels(transport).map(|all| Figure::Detail(json!(all))));
    row = kill::with_kill(row, transport);
    row.count(&transport.counts);
    row
}

/// Returns the row of a transport without a result.
pub(super) fn missing(transport: &Transport) -> Row {
    let why = transport.why_lost.as_deref().unwrap_or("no run succeeded");
    Row::missing(&transport.row(), why, &transport.counts)
}

/// Returns the transport's counters, summed over all runs.
fn counters(transport: &Transport) -> BTreeMap<&str, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in transport.runs.iter().flat_map(|run| &run.counters) {
        *sums.entry(name.as_str()).or_default() += count;
    }
    sums.retain(|_, count| *count > 0);
    sums
}

/// Returns the traffic through the switch, level by level: total counts, means of means, and the
/// longest queue over all runs. `None` if a run has no switch counters.
pub(super) fn levels(transport: &Transport) -> Option<Vec<LevelLoad>> {
    let runs: Option<Vec<_>> = transport.runs.iter().map(|run| run.switch.as_ref()).collect();
    let runs = runs?;
    let levels = runs.iter().map(|switch| switch.levels.len()).min()?;
    let level = |index: usize| {
        let each = || runs.iter().map(|switch| switch.levels[index]);
        LevelLoad {
            packets: each().map(|level| level.packets).sum(),
            bytes: each().map(|level| level.bytes).sum(),
            drops: each().map(|level| level.drops).sum(),
            queue_mean: rounded(
                each().map(|level| level.queue_mean).sum::<f64>() / runs.len() as f64,
            ),
            queue_max: each().map(|level| level.queue_max).max().unwrap_or(0),
        }
    };
    Some((0..levels).map(level).collect())
}

/// Returns the pairs to compare: every other transport with apus, and each concurrent transport
/// with its isolated run.
fn pairs(transports: &[Transport]) -> Vec<(&Transport, &Transport)> {
    let alone =
        |name: &str| transports.iter().find(|each| each.name == name && each.beside.is_empty());
    let ours = alone(OURS);
    let others = transports.iter().filter(|each| each.row() != OURS);
    let with_ours = others.filter_map(|other| Some((other, ours?)));
    let beside = transports.iter().filter(|each| !each.beside.is_empty() && each.name != OURS);
    let with_itself = beside.filter_map(|each| Some((each, alone(&each.name)?)));
    with_ours.chain(with_itself).collect()
}

/// Quotients of short messages' slowdowns, run by run.
pub(super) fn ratios(transports: &[Transport]) -> Vec<(String, Ratio)> {
    let pairs = pairs(transports).into_iter();
    pairs.flat_map(|(one, other)| ratios_of(one, other)).chain(kill::ratios(transports)).collect()
}

/// Quotients of two transports.
pub(super) fn ratios_of(one: &Transport, other: &Transport) -> Vec<(String, Ratio)> {
    let ratio = |name: &str, figure: fn(&Run) -> f64| {
        let (dividend, divisor) = one.paired(other, figure);
        let ratio = Ratio::over(&dividend, &divisor)?;
        Some((format!("{name} {}/{}", one.row(), other.row()), ratio))
    };
    let p99 = ratio("short_p99", |run| run.summary.short.p99);
    let p50 = ratio("short_p50", |run| run.summary.short.p50);
    p99.into_iter().chain(p50).collect()
}

/// Returns the comparisons as sentences with confidence intervals.
pub(super) fn comparisons(transports: &[Transport]) -> Vec<Comparison> {
    let p99 = |transport: &Transport| transport.over_runs(|run| run.summary.short.p99);
    let compare = |(one, other): (&Transport, &Transport)| {
        let (theirs, base) = (p99(one), p99(other));
        Comparison::between("short_p99", (&one.row(), &theirs), (&other.row(), &base))
    };
    pairs(transports).into_iter().map(compare).collect()
}

/// Returns the caveats that a reader of the figures must know.
pub(super) fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = measured.notes.clone();
    for transport in &measured.transports {
        let name = transport.row();
        let (runs, asked) = (transport.runs.len(), measured.settings.runs);
        if runs == 0 {
            notes.push(format!("{name} has no result: none of its {asked} runs succeeded"));
            continue;
        }
        if runs < asked {
            notes.push(format!("{name} has the results of {runs} runs instead of {asked}"));
        }
        notes.extend(trouble(transport, kept_up(&measured.settings)));
    }
    notes
}

/// Returns the share of the offered load that a transport completes in time if its queue does not
/// grow.
fn kept_up(settings: &Settings) -> f64 {
    let there_and_back = 2.0 * 8.0 * settings.mean_bytes / settings.link as f64;
    KEPT_UP - ON_ITS_WAY * there_and_back / settings.seconds
}

/// Returns the problems in a transport's runs. `enough` is the share of the offered load that a
/// transport completes if its queue does not grow.
fn trouble(transport: &Transport, enough: f64) -> impl Iterator<Item = String> {
    let name = transport.row();
    let errors = transport.errors();
    let why = transport.runs.iter().find_map(|run| run.why.clone());
    let why = why.map_or_else(String::new, |why| format!("; the first one: {why}"));
    let failed =
        (errors > 0).then(|| format!("{errors} requests of {name} were never completed{why}"));
    let kept_up =
        transport.spread(|run| run.achieved_load / run.offered_load.max(f64::MIN_POSITIVE)).min;
    let fell_behind = (kept_up < enough).then(|| {
        format!(
            "{name} completed only {:.0} % of what was due in one run: its queue grew, and its \
             slowdown depends on how long the run was",
            100.0 * kept_up
        )
    });
    let idle = transport.spread_of(|run| run.idle).map_or(1.0, |idle| idle.min);
    let busy = (idle < IDLE).then(|| {
        format!(
            "the cores were idle for only {:.0} % of the time with {name} in one run: they, and not the \
             links, may be what it waits for",
            100.0 * idle
        )
    });
    [failed, fell_behind, busy, kill::note(transport)].into_iter().flatten()
}
