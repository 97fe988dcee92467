//! How do grants look over time?

use crate::merge::Merged;
use crate::report::grants::{CAUSES, Grants, Level, Process};
use serde_json::json;

use super::Shown;
use super::cells::{line, percent, whole};
use apus_report::chart::{Axis, Chart, Line, Stroke, Plot, Point, Scale, short_number, steps};
use apus_report::result::{Table, short};

/// The report; gaps between packets count from `least` nanoseconds on.
#[must_use]
pub fn grants(merged: &Merged, least: i64) -> Shown {
    let found = Grants::of(merged, least);
    let question = "is enough granted, and does the link idle while work waits?";
    let config = json!({ "gap_us": least as f64 / 1e3 });
    let mut shown = Shown::new("grants", question, merged, config, &found);
    shown.table(levels(&found));
    shown.table(links(&found));
    if let Some(plot) = plot(merged, &found) {
        shown.plot(plot);
    }
    if found.processes.is_empty() {
        shown.note(super::shown::nothing(merged, "message of several packets"));
    } else if !merged.traces_all() {
        shown.note(
            "only some RPCs are traced: what the others sent is not seen, so idle times are too long, and bytes too few"
                .to_owned(),
        );
    }
    shown
}

fn levels(found: &Grants) -> Table {
    let row = |name: &str, what: &str, level: &Level| {
        let cells = [short(level.mean / 1e3), short(level.max as f64 / 1e3), percent(level.none)];
        let mut line =
            vec![format!("{name}: {what}"), level.messages.to_string(), whole(level.time)];
        line.extend(cells);
        line
    };
    let lines = |process: &Process| {
        let name = &process.name;
        [("outstanding", &process.outstanding), ("available", &process.available)]
            .into_iter()
            .filter(|(_, level)| level.messages > 0)
            .map(|(what, level)| row(name, what, level))
            .collect::<Vec<_>>()
    };
    Table {
        title: "bytes granted and not come (outstanding), granted and not sent (available)"
            .to_owned(),
        header: line(["process", "messages", "time us", "mean kB", "max kB", "none"]),
        lines: found.processes.iter().flat_map(lines).collect(),
    }
}

fn links(found: &Grants) -> Table {
    let row = |Process { name, link, .. }: &Process| {
        let share = |nanos: i64| percent(nanos as f64 / link.waiting.max(1) as f64);
        let mut cells = vec![
            name.clone(),
            short(link.bytes as f64 / 1e3),
            whole(link.waiting),
            share(link.idle),
            link.gaps.to_string(),
            whole(link.longest),
        ];
        cells.extend(link.causes.map(share));
        cells
    };
    let mut header = line(["receiver", "kB", "work waited us", "link idle", "gaps", "longest us"]);
    header.extend(CAUSES.map(|cause| format!("idle: {cause}")));
    let waiting = found.processes.iter().filter(|process| process.link.waiting > 0);
    Table {
        title: "idle links while a message had come in part".to_owned(),
        header,
        lines: waiting.map(row).collect(),
    }
}

fn plot(merged: &Merged, found: &Grants) -> Option<Plot> {
    let start = merged.records.first()?.at;
    let mut lines = Vec::new();
    for (place, process) in found.processes.iter().enumerate() {
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
    let caption = "Means over equal parts of the time. Solid: granted by a receiver, and not come. Dashed: granted to a \
                   sender, and not sent.";
    Some(Plot::of_lines("grants", "Granted bytes over time", caption, &chart))
}
