//! View of packet delays.

use crate::merge::MergedTraces;
use crate::report::delays::{Delays, PacketDelays};
use crate::report::{PERCENTILES, RpcFilter};

use super::cells::{percentile_headers, percentiles};
use super::report_view::{ReportView, percentile_plot};
use apus_report::result::Table;

/// Renders the report on packets of the RPCs that match `filter`.
#[must_use]
pub fn delays(merged: &MergedTraces, filter: &RpcFilter) -> ReportView {
    let report = Delays::of(merged, filter);
    let question = "how long do packets take, stage by stage?";
    let mut view = ReportView::new("delays", question, merged, filter, &report);
    for kind in &report.kinds {
        view.table(table(kind));
    }
    let whole: Vec<_> = report
        .kinds
        .iter()
        .filter_map(|kind| {
            let whole = kind.stages.iter().find(|(name, _)| ["lived", "came"].contains(name));
            whole.map(|(_, times)| (kind.name, times))
        })
        .collect();
    if whole.is_empty() {
        view.note(super::report_view::empty_note(merged, "packet traced at both ends"));
    } else {
        let caption = "From the sender's transport to the receiver's: share of the packets of a kind that took at most \
                       this time.";
        view.plot(percentile_plot("delays", "Packet delays", caption, &whole));
    }
    if report.unpaired > 0 {
        let count = report.unpaired;
        view.note(format!(
            "{count} received pieces have no matching burst in any trace: name the traces of both ends"
        ));
    }
    view
}

fn table(kind: &PacketDelays) -> Table {
    let mut header = vec!["stage".to_owned(), "packets".to_owned()];
    header.extend(percentile_headers(&PERCENTILES));
    let row = |(name, times): &(&'static str, crate::report::Distribution)| {
        let mut cells = vec![(*name).to_owned(), times.count().to_string()];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    Table { title: kind.name.to_owned(), header, lines: kind.stages.iter().map(row).collect() }
}
