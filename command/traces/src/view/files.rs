//! View of file operations.

use crate::merge::MergedTraces;
use crate::report::files::{FileOperation, FileOperations, OperationCount};

use super::cells::{
    format_count, format_micros, format_nanos, line, percentile_headers, percentiles,
};
use super::report_view::ReportView;
use apus_report::result::Table;
use serde_json::json;

const PERCENTILES: [f64; 4] = [0.0, 50.0, 99.0, 100.0];

/// Renders the report on file operations, with the stations of the `limit` longest operations.
#[must_use]
pub fn files(merged: &MergedTraces, limit: usize) -> ReportView {
    let report = FileOperations::of(merged);
    let question = "where is the time of file operations?";
    let config = json!({ "limit": limit });
    let mut view = ReportView::new("files", question, merged, config, &report);
    view.table(kinds(&report.kinds));
    report.operations.iter().take(limit).for_each(|operation| view.table(way(operation)));
    if report.operations.is_empty() {
        view.note("the traces have no file operation; record all with --trace all".to_owned());
    }
    if report.incomplete > 0 {
        let count = format_count(report.incomplete, "operation");
        view.note(format!("the reply to {count} is not in the traces"));
    }
    if !merged.traces_all() {
        view.note("only some operations and RPCs are traced".to_owned());
    }
    view
}

fn kinds(all: &[OperationCount]) -> Table {
    let mut header = line(["operation", "count", "calls", "mean us"]);
    header.extend(percentile_headers(&PERCENTILES));
    let row = |OperationCount { kind, calls, times }: &OperationCount| {
        let count = times.count().to_string();
        let mut cells = vec![kind.clone(), count, calls.to_string(), format_micros(times.mean())];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    let title = "from the kernel's request to the reply".to_owned();
    Table { title, header, lines: all.iter().map(row).collect() }
}

fn way(operation: &FileOperation) -> Table {
    let FileOperation { kind, id, error, took, stations } = operation;
    let failed = if *error == 0 { String::new() } else { format!(", error {error}") };
    let row = |station: &crate::report::files::Station| {
        let at = format_nanos(station.at);
        vec![at, station.process.clone(), station.event.to_owned(), station.detail.clone()]
    };
    Table {
        title: format!("{kind} (request {id}{failed}): {} us", format_nanos(*took)),
        header: line(["us", "process", "station", ""]),
        lines: stations.iter().map(row).collect(),
    }
}
