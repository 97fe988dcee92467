//! How do handoffs look?

use crate::merge::Merged;
use crate::report::handoffs::{Handoffs, Pair};
use crate::report::{Distribution, Filter};

use super::Shown;
use super::cells::{counted, heads, line, micros, percentiles};
use super::shown::curve;
use apus_report::result::Table;

const PERCENTILES: [f64; 6] = [0.0, 10.0, 50.0, 90.0, 99.0, 100.0];

/// The report on messages of the RPCs that `filter` admits.
#[must_use]
pub fn handoffs(merged: &Merged, filter: &Filter) -> Shown {
    let found = Handoffs::of(merged, filter);
    let question = "how long does it take from ready to running, and who woke whom?";
    let mut shown = Shown::new("handoffs", question, merged, filter, &found);
    let kinds = [
        ("waiter was asleep", &found.asleep),
        ("waiter was spinning", &found.spinning),
        ("turn passed to a sleeper", &found.turn_delays),
    ];
    let kinds: Vec<(&str, &Distribution)> =
        kinds.into_iter().filter(|(_, times)| times.count() > 0).collect();
    shown.table(delays(&kinds));
    shown.table(pairs(&found.pairs));
    let messages = found.handed + found.taken;
    shown.sentence(format!(
        "{}: {} needed nobody to be told, {} handed to a waiter. {} of the turn to poll.",
        counted(messages, "message"),
        found.taken,
        found.handed,
        counted(found.turns, "handover")
    ));
    if found.unseen > 0 {
        shown.note(format!(
            "{} waiters were told, and the traces do not show them run",
            found.unseen
        ));
    }
    if messages == 0 {
        shown.note(super::shown::nothing(merged, "message"));
    }
    if !kinds.is_empty() {
        let caption = "From ready to running: so many percent of all took that long at most.";
        shown.plot(curve("handoffs", "From ready to running", caption, &kinds));
    }
    shown
}

fn delays(kinds: &[(&str, &Distribution)]) -> Table {
    let mut header = line(["from ready to running", "count", "mean us"]);
    header.extend(heads(&PERCENTILES));
    let row = |(name, times): &(&str, &Distribution)| {
        let mut cells = vec![(*name).to_owned(), times.count().to_string(), micros(times.mean())];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    Table { title: "delays".to_owned(), header, lines: kinds.iter().map(row).collect() }
}

fn pairs(all: &[Pair]) -> Table {
    let mut header = line(["who told whom", "messages", "asleep", "mean us"]);
    header.extend(heads(&PERCENTILES));
    let row = |Pair { from, to, asleep, delay }: &Pair| {
        let mut cells = vec![format!("{from} → {to}"), delay.count().to_string()];
        cells.extend([asleep.to_string(), micros(delay.mean())]);
        cells.extend(percentiles(delay, &PERCENTILES));
        cells
    };
    Table { title: "who woke whom".to_owned(), header, lines: all.iter().map(row).collect() }
}
