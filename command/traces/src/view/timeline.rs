//! View of the timeline.

use crate::merge::MergedTraces;
use crate::report::RpcFilter;
use crate::report::timeline::{MediumTimeline, StageLine, Timeline};

use super::cells::{
    difference, format_count, format_micros, format_nanos, format_percent, line,
    percentile_headers, percentiles,
};
use super::report_view::ReportView;
use apus_report::chart::{Axis, Bar, Bars, Group as BarGroup, Plot, Stroke, short_number};
use apus_report::result::Table;

const PERCENTILES: [f64; 4] = [10.0, 50.0, 90.0, 99.0];

/// Renders the report on the RPCs that match `filter`.
#[must_use]
pub fn timeline(merged: &MergedTraces, filter: &RpcFilter) -> ReportView {
    let report = Timeline::of(merged, filter);
    let question = "where do the microseconds of short RPCs go?";
    let mut view = ReportView::new("timeline", question, merged, filter, &report);
    for group in &report.groups {
        view.table(table(group));
        view.sentence(sum(group));
        view.plot(plot(group));
    }
    if report.groups.is_empty() {
        view.note(super::report_view::empty_note(merged, "RPC from its call to its return"));
    }
    if report.incomplete > 0 {
        view.note(super::report_view::incomplete_note(report.incomplete));
    }
    view
}

fn table(group: &MediumTimeline) -> Table {
    let rtt = group.rtt.mean().max(1.0);
    let row = |StageLine { stage, rpcs, times }: &StageLine| {
        let mut cells = vec![format!("{}: {}", stage.place, stage.name), rpcs.to_string()];
        cells.extend([format_micros(times.mean()), format_percent(times.mean() / rtt)]);
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    let mut lines: Vec<Vec<String>> = group.stages.iter().map(row).collect();
    let medians = group.sum_of_medians();
    let mut sum = line(["all stages", ""]);
    sum.extend([format_micros(group.sum_of_means()), format_percent(group.sum_of_means() / rtt)]);
    sum.extend([String::new(), format_nanos(medians), String::new(), String::new()]);
    let mut measured = vec!["RTT at the client".to_owned(), group.rtt.count().to_string()];
    measured.extend([format_micros(group.rtt.mean()), format_percent(1.0)]);
    measured.extend(percentiles(&group.rtt, &PERCENTILES));
    lines.extend([sum, measured]);
    let mut header = line(["stage", "RPCs", "mean us", "share"]);
    header.extend(percentile_headers(&PERCENTILES));
    let count = format_count(group.rtt.count(), "RPC");
    Table { title: format!("{count} through {}", medium_name(group)), header, lines }
}

fn medium_name(group: &MediumTimeline) -> &'static str {
    if group.medium == "memory" { "shared memory" } else { "the network" }
}

fn sum(group: &MediumTimeline) -> String {
    let [means, medians] = group.differences();
    format!(
        "Through {}: the stages' means add up to {} us, {} relative to the {} us from call to return at the client; \
         their medians add up to {} us, {} relative to {} us.",
        medium_name(group),
        format_micros(group.sum_of_means()),
        difference(means),
        format_micros(group.rtt.mean()),
        format_nanos(group.sum_of_medians()),
        difference(medians),
        format_nanos(group.rtt.median()),
    )
}

fn plot(group: &MediumTimeline) -> Plot {
    let bars_of = |StageLine { stage, times, .. }: &StageLine| BarGroup {
        label: format!("{} {}", stage.place, stage.name),
        bars: [
            ("mean", 0, Stroke::Plain, times.mean()),
            ("median", 1, Stroke::Plain, times.median() as f64),
        ]
        .into_iter()
        .map(|(name, colour, stroke, nanos)| Bar {
            name: name.to_owned(),
            colour,
            stroke,
            value: (nanos / 1e3).max(0.0),
            range: None,
            says: format!("{} us: {}", format_micros(nanos), stage.meaning),
        })
        .collect(),
    };
    let groups: Vec<BarGroup> = group.stages.iter().map(bars_of).collect();
    let values = groups.iter().flat_map(|bars_of| &bars_of.bars).map(|bar| bar.value);
    let y = Axis::linear("microseconds", values.collect::<Vec<_>>().into_iter(), short_number);
    let title = format!("Stages of RPCs through {}", medium_name(group));
    let bars = Bars { description: &title, label: "stages, in order", y, groups, stacked: false };
    let caption = "Duration of each stage, from the call on the left to the return on the right. The means add up to the \
                   mean round trip.";
    Plot::of_bars(&format!("timeline-{}", group.medium), &title, caption, &bars)
}
