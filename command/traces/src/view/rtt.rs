//! View of round trips.

use crate::merge::MergedTraces;
use crate::report::RpcFilter;
use crate::report::rtt::{LengthClass, RoundTrips, Slowest};

use super::cells::{
    format_count, format_micros, format_nanos, format_percent, line, percentile_headers,
    percentiles,
};
use super::report_view::{ReportView, percentile_plot};
use apus_report::result::Table;

const PERCENTILES: [f64; 7] = [0.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0];

/// Number of circumstances in the table; JSON contains all of them.
const MAX_LINES: usize = 12;

/// Renders the report on the RPCs that match `filter`.
#[must_use]
pub fn rtt(merged: &MergedTraces, filter: &RpcFilter) -> ReportView {
    let report = RoundTrips::of(merged, filter);
    let question = "how are round trips distributed, and what have the slowest in common?";
    let mut view = ReportView::new("rtt", question, merged, filter, &report);
    view.table(classes(&report.classes));
    if let Some(slowest) = &report.slowest {
        view.table(stages(slowest));
        view.table(circumstances(slowest));
        view.table(examples(slowest));
        view.sentence(format!(
            "The slowest 1 % are {}: at least {:.2} times the median of their length class.",
            format_count(slowest.rpcs, "RPC"),
            slowest.slower_than_median
        ));
        let names: Vec<String> = report.classes.iter().map(name).collect();
        let lines: Vec<_> =
            names.iter().zip(&report.classes).map(|(name, it)| (name.as_str(), &it.rtt)).collect();
        let caption = "From call to return at the client: share of the RPCs of a length class that took at most this \
                       time.";
        view.plot(percentile_plot("rtt", "Round trips", caption, &lines));
    } else {
        view.note(super::report_view::empty_note(merged, "RPC from its call to its return"));
    }
    if report.incomplete > 0 {
        view.note(super::report_view::incomplete_note(report.incomplete));
    }
    view
}

fn name(class: &LengthClass) -> String {
    match class.upto_bytes {
        Some(bytes) => format!("up to {bytes} B"),
        None => "longer".to_owned(),
    }
}

fn classes(all: &[LengthClass]) -> Table {
    let mut header = line(["longer message", "RPCs", "mean us"]);
    header.extend(percentile_headers(&PERCENTILES));
    let row = |class: &LengthClass| {
        let rtt = &class.rtt;
        let mut cells = vec![name(class), rtt.count().to_string(), format_micros(rtt.mean())];
        cells.extend(percentiles(rtt, &PERCENTILES));
        cells
    };
    Table { title: "round trips".to_owned(), header, lines: all.iter().map(row).collect() }
}

fn stages(slowest: &Slowest) -> Table {
    let row = |it: &crate::report::rtt::Excess| {
        vec![
            format!("{}: {}", it.stage.place, it.stage.name),
            format_micros(it.slowest),
            format_micros(it.usual),
            format_micros(it.slowest - it.usual),
        ]
    };
    Table {
        title: "where the slowest 1 % spent their time (means)".to_owned(),
        header: line(["stage", "slowest us", "middle half us", "more us"]),
        lines: slowest.stages.iter().map(row).collect(),
    }
}

fn circumstances(slowest: &Slowest) -> Table {
    let row = |it: &crate::report::rtt::Circumstance| {
        vec![it.what.clone(), format_percent(it.of_slowest), format_percent(it.of_others)]
    };
    Table {
        title: "circumstances more frequent among the slowest".to_owned(),
        header: line(["circumstance", "of the slowest", "of all others"]),
        lines: slowest.circumstances.iter().take(MAX_LINES).map(row).collect(),
    }
}

fn examples(slowest: &Slowest) -> Table {
    let row = |it: &crate::report::rtt::SlowRpc| {
        let most = it.most.map_or_else(String::new, |it| format!("{}: {}", it.place, it.name));
        vec![it.id.to_string(), format_nanos(it.at), format_nanos(it.rtt), most]
    };
    Table {
        title: "the slowest".to_owned(),
        header: line(["RPC", "called at us", "RTT us", "largest excess"]),
        lines: slowest.examples.iter().map(row).collect(),
    }
}
