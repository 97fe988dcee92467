//! View of grants over time.

use crate::merge::MergedTraces;
use crate::report::grants::{ByteLevel, CAUSES, Grants, ProcessGrants};
use serde_json::json;

use super::cells::{format_nanos, format_percent, line};
use super::report_view::ReportView;
use apus_report::chart::{Axis, Chart, Line, Plot, Point, Scale, Stroke, short_number, steps};
use apus_report::result::{Table, short};

/// Renders the report on grants, with gaps of at least `min_gap` nanoseconds between packets.
#[must_use]
pub fn grants(merged: &MergedTraces, min_gap: i64) -> ReportView {
    let report = Grants::of(merged, min_gap);
    let question = "is enough granted, and does the link idle while work waits?";
    let config = json!({ "gap_us": min_gap as f64 / 1e3 });
    let mut view = ReportView::new("grants", question, merged, config, &report);
    view.table(levels(&report));
    view.table(links(&report));
    if let Some(plot) = plot(merged, &report) {
        view.plot(plot);
    }
    if report.processes.is_empty() {
        view.note(super::report_view::empty_note(merged, "message of several packets"));
    } else if !merged.traces_all() {
        view.note(
            "only some RPCs are traced: packets of the others are missing, so idle times are too long and byte counts too small"
                .to_owned(),
        );
    }
    view
}

fn levels(report: &Grants) -> Table {
    let row = |name: &str, what: &str, level: &ByteLevel| {
        let cells =
            [short(level.mean / 1e3), short(level.max as f64 / 1e3), format_percent(level.none)];
        let mut line =
            vec![format!("{name}: {what}"), level.messages.to_string(), format_nanos(level.time)];
        line.extend(cells);
        line
    };
    let lines = |process: &ProcessGrants| {
        let name = &process.name;
        [("outstanding", &process.outstanding), ("available", &process.available)]
            .into_iter()
            .filter(|(_, level)| level.messages > 0)
            .map(|(what, level)| row(name, what, level))
            .collect::<Vec<_>>()
    };
    Table {
        title: "bytes granted and not received (outstanding), granted and not sent (available)"
            .to_owned(),
        header: line(["process", "messages", "time us", "mean kB", "max kB", "none"]),
        lines: report.processes.iter().flat_map(lines).collect(),
    }
}

fn links(report: &Grants) -> Table {
    let row = |ProcessGrants { name, link, .. }: &ProcessGrants| {
        let share = |nanos: i64| format_percent(nanos as f64 / link.waiting.max(1) as f64);
        let mut cells = vec![
            name.clone(),
            short(link.bytes as f64 / 1e3),
            format_nanos(link.waiting),
            share(link.idle),
            link.gaps.to_string(),
            format_nanos(link.longest),
        ];
        cells.extend(link.causes.map(share));
        cells
    };
    let mut header = line(["receiver", "kB", "work waited us", "link idle", "gaps", "longest us"]);
    header.extend(CAUSES.map(|cause| format!("idle: {cause}")));
    let waiting = report.processes.iter().filter(|process| process.link.waiting > 0);
    Table {
        title: "idle links while a message had arrived in part".to_owned(),
        header,
        lines: waiting.map(row).collect(),
    }
}

fn plot(merged: &MergedTraces, report: &Grants) -> Option<Plot> {
    let start = merged.records.first()?.at;
    let mut lines = Vec::new();
    for (place, process) in report.processes.iter().enumerate() {
        for (what, level, stroke) in [
            ("outstanding", &process.outstanding, Stroke::Plain),
            ("available", &process.available, Stroke::Faint),
        ] {
            let point = |&(at, bytes): &(i64, f64)| Point {
                x: (at - start) as f64 / 1e6,
                y: bytes / 1e3,
                range: None,
                at: format!("{} ms", short((at - start) as f64 / 1e6)).into(),
                says: format!("{} kB", short(bytes / 1e3)).into(),
            };
            let points: Vec<_> = level.curve.iter().map(point).collect();
            if !points.is_empty() {
                let name = format!("{}: {what}", process.name).into();
                lines.push(Line { name, colour: place % 8, stroke, points });
            }
        }
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|point| point.x).fold(0.0, f64::max);
    let values: Vec<f64> = points().map(|point| point.y).collect();
    if values.is_empty() {
        return None;
    }
    let chart = Chart {
        description: "Granted bytes over time",
        x: Axis::new("milliseconds", Scale::Linear, steps(last, short_number)),
        y: Axis::linear("kB", values.into_iter(), short_number),
        lines,
    };
    let caption = "Means over equal parts of the time. Solid: granted by a receiver and not received. Dashed: granted to \
                   a sender and not sent.";
    Some(Plot::of_lines("grants", "Granted bytes over time", caption, &chart))
}
