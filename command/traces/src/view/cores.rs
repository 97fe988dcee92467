//! View of core usage: threads and their gaps.

use crate::merge::MergedTraces;
use crate::report::cores::{CoreUsage, Stall, ThreadUsage};
use serde_json::json;

use super::cells::{format_count, format_nanos, format_percent, line};
use super::report_view::ReportView;
use apus_report::chart::{Axis, Bar, Bars, Group, Plot, Stroke, short_number};
use apus_report::result::Table;

/// Number of gaps in the table; JSON contains all of them.
const MAX_LINES: usize = 20;

/// Renders the report on core usage, with gaps longer than `min_gap` nanoseconds.
#[must_use]
pub fn cores(merged: &MergedTraces, min_gap: i64) -> ReportView {
    let report = CoreUsage::of(merged, min_gap);
    let question = "when did threads with work not run?";
    let config = json!({ "gap_us": min_gap as f64 / 1e3 });
    let mut view = ReportView::new("cores", question, merged, config, &report);
    view.table(threads(&report.threads));
    view.table(stalls(&report.stalls));
    let (count, shortest) = (report.stalls.len(), format_nanos(min_gap));
    let gaps = format!("{} longer than {shortest} us", format_count(count, "gap"));
    view.sentence(match (count, report.simultaneous()) {
        (0, _) => format!("No thread with work paused for more than {shortest} us."),
        (_, 0) => format!("{gaps} in which a thread had work, never two on one host at the same time."),
        (_, at_once) => format!(
            "{gaps} in which a thread had work. {at_once} of them coincide with a gap of another thread on the host: then \
             the whole host pauses."
        ),
    });
    if !report.threads.is_empty() {
        view.plot(plot(&report.threads));
    }
    view
}

fn threads(all: &[ThreadUsage]) -> Table {
    let row = |it: &ThreadUsage| {
        let share = |nanos: i64| format_percent(nanos as f64 / it.span.max(1) as f64);
        vec![
            it.thread.clone(),
            it.cpu.to_string(),
            format_nanos(it.span),
            share(it.working),
            share(it.asleep),
            it.gaps.count().to_string(),
            format_nanos(i64::try_from(it.gaps.sum()).unwrap_or(i64::MAX)),
            format_nanos(it.gaps.percentile(100.0)),
        ]
    };
    Table {
        title: "threads".to_owned(),
        header: line([
            "thread",
            "CPU",
            "seen us",
            "worked",
            "slept",
            "gaps",
            "in gaps us",
            "longest us",
        ]),
        lines: all.iter().map(row).collect(),
    }
}

fn stalls(all: &[Stall]) -> Table {
    let row = |it: &Stall| {
        let [before, after] = &it.between;
        let others = if it.others == 0 { String::new() } else { it.others.to_string() };
        vec![
            it.name.clone(),
            format_nanos(it.at),
            format_nanos(it.duration),
            format!("{before} → {after}"),
            others,
        ]
    };
    let view = all.len().min(MAX_LINES);
    Table {
        title: format!("the longest {view} of {} gaps in work", all.len()),
        header: line(["thread", "at us", "lasted us", "between", "other threads at the same time"]),
        lines: all.iter().take(MAX_LINES).map(row).collect(),
    }
}

fn plot(all: &[ThreadUsage]) -> Plot {
    let group = |it: &ThreadUsage| {
        let share = |nanos: i64| 100.0 * nanos as f64 / it.span.max(1) as f64;
        let (worked, slept) = (share(it.working), share(it.asleep));
        let rest = (100.0 - worked - slept).max(0.0);
        let bar = |name: &str, colour, value: f64| Bar {
            name: name.to_owned(),
            colour,
            stroke: Stroke::Plain,
            value,
            range: None,
            says: format!("{value:.1} %"),
        };
        let bars = vec![
            bar("worked", 0, worked),
            bar("asleep", 2, slept),
            bar("spinning, or in the application", 1, rest),
        ];
        Group { label: it.thread.clone(), bars }
    };
    let y = Axis::linear("percent of the time", [100.0].into_iter(), short_number);
    let title = "How threads spent their time";
    let groups = all.iter().map(group).collect();
    let bars = Bars { description: title, label: "threads", y, groups, stacked: true };
    let caption = "Work is what the trace records as such: polls, sends, passes, calls and replies in progress. A spinning \
                   thread records nothing, nor does the application.";
    Plot::of_bars("cores", title, caption, &bars)
}
