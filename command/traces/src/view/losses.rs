//! View of losses.

use crate::merge::MergedTraces;
use crate::report::losses::{AnomalyCount, CauseCount, Losses, Resend};
use crate::report::{Distribution, RpcFilter};

use super::cells::{format_nanos, format_optional, line, percentile_headers, percentiles};
use super::report_view::{ReportView, percentile_plot};
use apus_report::result::Table;

const PERCENTILES: [f64; 4] = [0.0, 50.0, 99.0, 100.0];

/// Number of RESENDs in the table; JSON contains all of them.
const MAX_LINES: usize = 20;

/// Renders the report on losses of the RPCs that match `filter`.
#[must_use]
pub fn losses(merged: &MergedTraces, filter: &RpcFilter) -> ReportView {
    let report = Losses::of(merged, filter);
    let question = "which bytes were requested again, and why?";
    let mut view = ReportView::new("lost", question, merged, filter, &report);
    view.table(causes(&report.causes));
    view.table(resends(&report.resends));
    view.table(rare(&report.rare));
    if report.resends.is_empty() {
        view.sentence("No RESEND was sent.".to_owned());
    }
    let lines: Vec<(&str, &Distribution)> = report
        .causes
        .iter()
        .filter(|it| it.wait.count() > 0)
        .map(|it| (it.cause.as_str(), &it.wait))
        .collect();
    if !lines.is_empty() {
        let caption = "From a RESEND to the first requested bytes: share of RESENDs that took at most this time.";
        view.plot(percentile_plot("lost", "Time from RESEND to data", caption, &lines));
    }
    if !merged.traces_all() && report.causes.iter().any(|it| it.cause.starts_with("unknown")) {
        view.note(
            "only some RPCs are traced; the causes of the other RESENDs are unknown".to_owned(),
        );
    }
    view
}

fn causes(all: &[CauseCount]) -> Table {
    let mut header = line(["cause", "RESENDs", "answered"]);
    header.extend(percentile_headers(&PERCENTILES));
    let row = |CauseCount { cause, resends, wait }: &CauseCount| {
        let mut cells = vec![cause.clone(), resends.to_string(), wait.count().to_string()];
        cells.extend(percentiles(wait, &PERCENTILES));
        cells
    };
    Table {
        title: "why bytes were requested again, and the time until they arrived".to_owned(),
        header,
        lines: all.iter().map(row).collect(),
    }
}

fn resends(all: &[Resend]) -> Table {
    let row = |it: &Resend| {
        let length = it.length.map_or_else(|| "all".to_owned(), |length| length.to_string());
        vec![
            it.id.to_string(),
            format_nanos(it.at),
            it.message.to_owned(),
            format!("{length} from {}", it.offset),
            format_optional(it.wait),
            it.cause.clone(),
        ]
    };
    let view = all.len().min(MAX_LINES);
    Table {
        title: format!("the first {view} of {} RESENDs", all.len()),
        header: line(["RPC", "at us", "message", "bytes", "waited us", "cause"]),
        lines: all.iter().take(MAX_LINES).map(row).collect(),
    }
}

fn rare(all: &[AnomalyCount]) -> Table {
    let row = |it: &AnomalyCount| {
        let reason = it.reason.clone().unwrap_or_default();
        vec![it.event.to_owned(), reason, it.process.clone(), it.count.to_string()]
    };
    Table {
        title: "rare events".to_owned(),
        header: line(["event", "reason", "process", "count"]),
        lines: all.iter().map(row).collect(),
    }
}
