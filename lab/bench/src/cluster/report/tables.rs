//! Tables of a cluster: switch, cores, priorities, runs.

use super::analysis::Analysis;
use super::input::{Run, Transport};
use super::rows::levels;
use crate::cluster::{LevelLoad, SwitchLoad};
use apus_report::result::table::spread_in_words;
use apus_report::result::{Table, short};
use apus_report::stats::Spread;

/// The cell of an unknown figure.
const ABSENT: &str = "–";

/// Returns the load of the switch and the cores, one line per transport.
pub(super) fn machinery(analysis: &Analysis) -> Table {
    let header = [
        "",
        "throughput Mbit/s",
        "cpu s per GB",
        "cores idle %",
        "drops",
        "queue kB, mean",
        "queue kB, longest",
    ];
    let line = |transport: &Transport| {
        let queue = |of: fn(&SwitchLoad) -> f64| {
            words(transport.spread_of(|run| run.switch.as_ref().map(|switch| of(switch) / 1e3)))
        };
        vec![
            transport.row(),
            spread_in_words(&transport.spread(|run| run.throughput / 1e6)),
            spread_in_words(&transport.spread(|run| run.cpu_per_gb)),
            words(transport.spread_of(|run| run.idle.map(|idle| 100.0 * idle))),
            drops(transport).map_or_else(absent, |drops| drops.to_string()),
            queue(|switch| switch.queue_mean),
            queue(|switch| switch.queue_max as f64),
        ]
    };
    Table::new("switch and cores", header, analysis.transports.iter().map(line).collect())
}

/// Returns the traffic through the switch, one line per priority, the highest first.
pub(super) fn priorities(analysis: &Analysis) -> Option<Table> {
    let known: Vec<(&Transport, Vec<LevelLoad>)> =
        analysis.transports.iter().filter_map(|each| Some((each, levels(each)?))).collect();
    let most = known.iter().map(|(_, levels)| levels.len()).max()?;
    let cell = |level: Option<&LevelLoad>| {
        level.map_or_else(absent, |level| {
            let longest = short(level.queue_max as f64 / 1e3);
            format!("{} / {} / {longest}", level.packets, level.drops)
        })
    };
    let line = |level: usize| {
        let cells = known.iter().map(|(_, levels)| cell(levels.get(level)));
        [format!("P{level}")].into_iter().chain(cells).collect()
    };
    let names = known.iter().map(|(transport, _)| transport.row());
    let header = ["priority".to_owned()].into_iter().chain(names);
    let title = "switch by priority: packets / drops / longest queue in kB";
    Some(Table::new(title, header, (0..most).rev().map(line).collect()))
}

/// Returns every run of every transport.
pub(super) fn runs(analysis: &Analysis) -> Table {
    let header = [
        "",
        "run",
        "short p50",
        "short p99",
        "short p99.9",
        "short p99 us",
        "all p99",
        "mean by bytes",
        "achieved load",
        "Mbit/s",
        "cpu s per GB",
        "idle %",
        "drops",
        "messages",
        "errors",
    ];
    let line = |(transport, run): (&Transport, &Run)| {
        let Run { summary, switch, .. } = run;
        let dropped = switch.as_ref().map(total_drops);
        vec![
            transport.row(),
            (run.number + 1).to_string(),
            short(summary.short.p50),
            short(summary.short.p99),
            short(summary.short.p999),
            short(summary.short_us.p99),
            short(summary.all.p99),
            short(summary.mean_by_bytes),
            short(run.achieved_load),
            short(run.throughput / 1e6),
            short(run.cpu_per_gb),
            run.idle.map_or_else(absent, |idle| short(100.0 * idle)),
            dropped.map_or_else(absent, |drops| drops.to_string()),
            summary.messages.to_string(),
            run.errors.to_string(),
        ]
    };
    let each = analysis.transports.iter().flat_map(|t| t.runs.iter().map(move |run| (t, run)));
    Table::new("every run", header, each.map(line).collect())
}

/// Returns the packets that the switch dropped in all runs.
pub(super) fn drops(transport: &Transport) -> Option<u64> {
    transport.runs.iter().map(|run| run.switch.as_ref().map(total_drops)).sum()
}

pub(super) fn total_drops(switch: &SwitchLoad) -> u64 {
    switch.levels.iter().map(|level| level.drops).sum()
}

fn words(spread: Option<Spread>) -> String {
    spread.as_ref().map_or_else(absent, spread_in_words)
}

fn absent() -> String {
    ABSENT.to_owned()
}
