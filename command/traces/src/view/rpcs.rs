//! View of single RPCs.

use crate::merge::MergedTraces;
use crate::report::RpcFilter;
use crate::report::rpcs::{MessageRates, RpcLine, RpcList, RpcOrder};
use serde_json::json;

use super::cells::{
    format_micros, format_nanos, format_optional, line, percentile_headers, percentiles,
};
use super::report_view::{ReportView, percentile_plot};
use apus_report::result::{Table, short};

const PERCENTILES: [f64; 6] = [0.0, 10.0, 50.0, 90.0, 99.0, 100.0];

/// Renders the report on the RPCs that match `filter`: the first `limit` of them in `order`.
#[must_use]
pub fn rpcs(
    merged: &MergedTraces,
    filter: &RpcFilter,
    order: RpcOrder,
    limit: usize,
) -> ReportView {
    let report = RpcList::of(merged, filter, order, limit);
    let mut config = json!(filter);
    config["sort"] = json!(order);
    config["limit"] = json!(limit);
    let question = "what happened to each RPC?";
    let mut view = ReportView::new("rpcs", question, merged, config, &report);
    view.table(table(&report, order));
    view.table(all(&report));
    if report.rpcs == 0 {
        view.note(super::report_view::empty_note(merged, "RPC"));
    }
    let lines = [("RTT", &report.rtt), ("first grant", &report.first_grant)];
    let lines: Vec<_> = lines.into_iter().filter(|(_, times)| times.count() > 0).collect();
    if !lines.is_empty() {
        let caption = "Round trips from call to return at the client, and times from queued to the first grant at the sender.";
        view.plot(percentile_plot("rpcs", "Round trips and first grants", caption, &lines));
    }
    view
}

fn table(report: &RpcList, order: RpcOrder) -> Table {
    let row = |it: &RpcLine| {
        let [request, response] = &it.messages;
        let both = |of: fn(&MessageRates) -> String| format!("{} / {}", of(request), of(response));
        vec![
            it.id.to_string(),
            format_nanos(it.at),
            format!("{} → {}", it.client.address, it.server.address),
            both(|message| message.length.map_or_else(|| "-".to_owned(), |it| it.to_string())),
            format_optional(it.rtt),
            both(|message| format_optional(message.first_grant)),
            both(|message| gigabits(message.transmit)),
            both(|message| gigabits(message.receive)),
            both(|message| gigabits(message.copy)),
            it.remarks.join(", "),
        ]
    };
    let (view, count) = (report.lines.len(), report.rpcs);
    Table {
        title: format!("{view} of {count} RPCs, by {order}; request / response"),
        header: line([
            "RPC",
            "at us",
            "between",
            "bytes",
            "RTT us",
            "first grant us",
            "transmit Gbit/s",
            "receive Gbit/s",
            "copy Gbit/s",
            "remarks",
        ]),
        lines: report.lines.iter().map(row).collect(),
    }
}

fn gigabits(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), short)
}

fn all(report: &RpcList) -> Table {
    let mut header = line(["of all", "count", "mean us"]);
    header.extend(percentile_headers(&PERCENTILES));
    let lines = [("RTT", &report.rtt), ("until the first grant", &report.first_grant)];
    let row = |(name, times): (&str, &crate::report::Distribution)| {
        let mut cells =
            vec![name.to_owned(), times.count().to_string(), format_micros(times.mean())];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    let lines = lines.into_iter().filter(|(_, times)| times.count() > 0).map(row).collect();
    Table { title: "all of them".to_owned(), header, lines }
}
