//! Origin of a report: its traces, and the alignment of their clocks.

use crate::merge::{ClockAlignment, MergedTraces, Placement};
use serde_json::{Value, json};

use super::cells::{format_micros, line};
use apus_report::result::Table;

/// Returns the table of traces.
pub(super) fn traces(merged: &MergedTraces) -> Table {
    let row = |(place, process): (usize, &crate::merge::Process)| {
        let head = &process.head;
        let (records, threads) = amounts(merged, place);
        let sampled = match head.period {
            1 => "all RPCs".to_owned(),
            0 => "off".to_owned(),
            period => format!("1 RPC in {period}"),
        };
        let frozen = head.frozen.map_or_else(|| "no".to_owned(), |it| frozen(merged, place, it));
        vec![
            process.source.clone(),
            head.host.clone(),
            format!("{} ({})", head.program, head.pid),
            threads.to_string(),
            records.to_string(),
            sampled,
            frozen,
        ]
    };
    Table {
        title: "traces".to_owned(),
        header: line(["trace", "host", "process", "threads", "records", "traced", "frozen"]),
        lines: merged.processes.iter().enumerate().map(row).collect(),
    }
}

fn amounts(merged: &MergedTraces, process: usize) -> (usize, usize) {
    let is_of = |thread: usize| merged.threads[thread].process == process;
    let records = merged.records.iter().filter(|entry| is_of(entry.thread)).count();
    (records, (0..merged.threads.len()).filter(|thread| is_of(*thread)).count())
}

fn frozen(merged: &MergedTraces, process: usize, frozen: apus_trace::Frozen) -> String {
    let values = &merged.processes[process].head.values;
    let names = values.get("freeze_reason");
    let name = names.and_then(|names| names.get(frozen.reason as usize));
    name.cloned().unwrap_or_else(|| format!("{:?}", frozen.reason).to_lowercase())
}

/// Returns the table of clocks; `None` if there is only one.
pub(super) fn clocks(merged: &MergedTraces) -> Option<Table> {
    let name = |clock: &ClockAlignment| {
        let names = clock.processes.iter().map(|process| merged.processes[*process].source.clone());
        names.collect::<Vec<_>>().join(", ")
    };
    let row = |clock: &ClockAlignment| {
        let ahead = format!("{:+.3}", clock.ahead as f64 / 1e6);
        let (how, ppm, uncertainty, packets) = match clock.placement {
            Placement::Reference => {
                ("reference".to_owned(), String::new(), String::new(), String::new())
            }
            Placement::Traffic { against, ppm, uncertainty, packets: [came, went] } => (
                format!("packets, against {}", name(&merged.clocks[against])),
                format!("{ppm:+.2}"),
                format!("± {}", format_micros(uncertainty)),
                format!("{came} there, {went} back"),
            ),
            Placement::WallClock => {
                ("wall clock".to_owned(), String::new(), "unknown".to_owned(), String::new())
            }
        };
        vec![name(clock), how, ahead, ppm, uncertainty, packets]
    };
    (merged.clocks.len() > 1).then(|| Table {
        title: "clocks".to_owned(),
        header: line([
            "clock of",
            "aligned by",
            "ahead ms",
            "fast ppm",
            "uncertainty us",
            "packets",
        ]),
        lines: merged.clocks.iter().map(row).collect(),
    })
}

/// Returns a sentence if several traces have the same clock.
pub(super) fn one_clock(merged: &MergedTraces) -> Option<String> {
    let same = merged.clocks.len() == 1 && merged.processes.len() > 1;
    same.then(|| "All traces use the clock of one host: no alignment was needed.".to_owned())
}

/// Returns traces and clocks for JSON.
pub(super) fn json(merged: &MergedTraces) -> [Value; 2] {
    let trace = |(place, process): (usize, &crate::merge::Process)| {
        let head = &process.head;
        let (records, threads) = amounts(merged, place);
        json!({
            "source": process.source, "host": head.host, "program": head.program, "pid": head.pid,
            "period": head.period, "threads": threads, "records": records,
            "frozen": head.frozen.map(|it| frozen(merged, place, it)),
        })
    };
    let clock = |clock: &ClockAlignment| {
        let processes: Vec<_> =
            clock.processes.iter().map(|process| &merged.processes[*process].source).collect();
        let ahead = clock.ahead as f64 / 1e3;
        match clock.placement {
            Placement::Reference => json!({"of": processes, "by": "reference", "ahead_us": 0.0}),
            Placement::Traffic { against, ppm, uncertainty, packets } => json!({
                "of": processes, "by": "packets", "against": against, "ahead_us": ahead,
                "ppm": (ppm * 1e3).round() / 1e3, "packets": packets,
                "uncertainty_us": crate::report::micros(uncertainty),
            }),
            Placement::WallClock => json!({"of": processes, "by": "wall clock", "ahead_us": ahead}),
        }
    };
    [
        merged.processes.iter().enumerate().map(trace).collect(),
        merged.clocks.iter().map(clock).collect(),
    ]
}
