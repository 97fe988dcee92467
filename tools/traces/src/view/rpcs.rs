//! How do single RPCs look?

use crate::merge::Merged;
use crate::report::Filter;
use crate::report::rpcs::{Line, Message, Order, Rpcs};
use serde_json::json;

use super::Shown;
use super::cells::{heads, known, line, micros, percentiles, whole};
use super::shown::curve;
use apus_report::result::{Table, short};

const PERCENTILES: [f64; 6] = [0.0, 10.0, 50.0, 90.0, 99.0, 100.0];

/// The report on the RPCs that `filter` admits: the first `limit` of them in that order.
#[must_use]
pub fn rpcs(merged: &Merged, filter: &Filter, order: Order, limit: usize) -> Shown {
    let found = Rpcs::of(merged, filter, order, limit);
    let mut config = json!(filter);
    config["sort"] = json!(order);
    config["limit"] = json!(limit);
    let question = "what happened to each RPC?";
    let mut shown = Shown::new("rpcs", question, merged, config, &found);
    shown.table(table(&found, order));
    shown.table(all(&found));
    if found.rpcs == 0 {
        shown.note(super::shown::nothing(merged, "RPC"));
    }
    let lines = [("RTT", &found.rtt), ("first grant", &found.first_grant)];
    let lines: Vec<_> = lines.into_iter().filter(|(_, times)| times.count() > 0).collect();
    if !lines.is_empty() {
        let caption = "Round trips from call to return at the client, and from queued to the first grant at the sender.";
        shown.plot(curve("rpcs", "Round trips and first grants", caption, &lines));
    }
    shown
}

fn table(found: &Rpcs, order: Order) -> Table {
    let row = |it: &Line| {
        let [request, response] = &it.messages;
        let both = |of: fn(&Message) -> String| format!("{} / {}", of(request), of(response));
        vec![
            it.id.to_string(),
            whole(it.at),
            format!("{} → {}", it.client.address, it.server.address),
            both(|message| message.length.map_or_else(|| "-".to_owned(), |it| it.to_string())),
            known(it.rtt),
            both(|message| known(message.first_grant)),
            both(|message| gigabits(message.transmit)),
            both(|message| gigabits(message.receive)),
            both(|message| gigabits(message.copy)),
            it.remarks.join(", "),
        ]
    };
    let (shown, count) = (found.lines.len(), found.rpcs);
    Table {
        title: format!("{shown} of {count} RPCs, by {order}; request / response"),
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
        lines: found.lines.iter().map(row).collect(),
    }
}

fn gigabits(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), short)
}

fn all(found: &Rpcs) -> Table {
    let mut header = line(["of all", "count", "mean us"]);
    header.extend(heads(&PERCENTILES));
    let lines = [("RTT", &found.rtt), ("until the first grant", &found.first_grant)];
    let row = |(name, times): (&str, &crate::report::Distribution)| {
        let mut cells = vec![name.to_owned(), times.count().to_string(), micros(times.mean())];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    let lines = lines.into_iter().filter(|(_, times)| times.count() > 0).map(row).collect();
    Table { title: "all of them".to_owned(), header, lines }
}
