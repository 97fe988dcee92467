//! View of handoffs.

use crate::merge::MergedTraces;
use crate::report::handoffs::{Handoffs, ThreadPair};
use crate::report::{Distribution, RpcFilter};

use super::cells::{format_count, format_micros, line, percentile_headers, percentiles};
use super::report_view::{ReportView, percentile_plot};
use apus_report::result::Table;

const PERCENTILES: [f64; 6] = [0.0, 10.0, 50.0, 90.0, 99.0, 100.0];

/// Renders the report on messages of the RPCs that match `filter`.
#[must_use]
pub fn handoffs(merged: &MergedTraces, filter: &RpcFilter) -> ReportView {
    let report = Handoffs::of(merged, filter);
    let question = "how long does it take from ready to running, and who woke whom?";
    let mut view = ReportView::new("handoffs", question, merged, filter, &report);
    let kinds = [
        ("waiter was asleep", &report.asleep),
        ("waiter was spinning", &report.spinning),
        ("poll role passed to a sleeping waiter", &report.role_delays),
    ];
    let kinds: Vec<(&str, &Distribution)> =
        kinds.into_iter().filter(|(_, times)| times.count() > 0).collect();
    view.table(delays(&kinds));
    view.table(pairs(&report.pairs));
    let messages = report.handoffs + report.without_handoff;
    view.sentence(format!(
        "{}: {} taken without a handoff, {} handed to a waiter. {} of the poll role.",
        format_count(messages, "message"),
        report.without_handoff,
        report.handoffs,
        format_count(report.role_passes, "handover")
    ));
    if report.unmatched > 0 {
        view.note(format!(
            "{} notified waiters have no later record in the traces",
            report.unmatched
        ));
    }
    if messages == 0 {
        view.note(super::report_view::empty_note(merged, "message"));
    }
    if !kinds.is_empty() {
        let caption = "From ready to running: share of handoffs that took at most this time.";
        view.plot(percentile_plot("handoffs", "From ready to running", caption, &kinds));
    }
    view
}

fn delays(kinds: &[(&str, &Distribution)]) -> Table {
    let mut header = line(["from ready to running", "count", "mean us"]);
    header.extend(percentile_headers(&PERCENTILES));
    let row = |(name, times): &(&str, &Distribution)| {
        let mut cells =
            vec![(*name).to_owned(), times.count().to_string(), format_micros(times.mean())];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    Table { title: "delays".to_owned(), header, lines: kinds.iter().map(row).collect() }
}

fn pairs(all: &[ThreadPair]) -> Table {
    let mut header = line(["threads", "messages", "asleep", "mean us"]);
    header.extend(percentile_headers(&PERCENTILES));
    let row = |ThreadPair { from, to, asleep, delay }: &ThreadPair| {
        let mut cells = vec![format!("{from} → {to}"), delay.count().to_string()];
        cells.extend([asleep.to_string(), format_micros(delay.mean())]);
        cells.extend(percentiles(delay, &PERCENTILES));
        cells
    };
    Table { title: "who woke whom".to_owned(), header, lines: all.iter().map(row).collect() }
}
