//! How do the delays of packets look?

use crate::merge::Merged;
use crate::report::delays::{Delays, Kind};
use crate::report::{Filter, PERCENTILES};

use super::Shown;
use super::cells::{heads, percentiles};
use super::shown::curve;
use apus_report::result::Table;

/// The report on packets of the RPCs that `filter` admits.
#[must_use]
pub fn delays(merged: &Merged, filter: &Filter) -> Shown {
    let found = Delays::of(merged, filter);
    let question = "how long do packets take, stage by stage?";
    let mut shown = Shown::new("delays", question, merged, filter, &found);
    for kind in &found.kinds {
        shown.table(table(kind));
    }
    let whole: Vec<_> = found
        .kinds
        .iter()
        .filter_map(|kind| {
            let whole = kind.stages.iter().find(|(name, _)| ["lived", "came"].contains(name));
            whole.map(|(_, times)| (kind.name, times))
        })
        .collect();
    if whole.is_empty() {
        shown.note(super::shown::nothing(merged, "packet whose both ends are traced"));
    } else {
        let caption = "From leaving the sender's protocol to being handled by the receiver's: so many percent of all \
                       packets of a kind took that long at most.";
        shown.plot(curve("delays", "How long packets lived", caption, &whole));
    }
    if found.unpaired > 0 {
        let count = found.unpaired;
        shown.note(format!(
            "{count} pieces came whose sending is not in any trace: name the traces of both ends"
        ));
    }
    shown
}

fn table(kind: &Kind) -> Table {
    let mut header = vec!["stage".to_owned(), "packets".to_owned()];
    header.extend(heads(&PERCENTILES));
    let row = |(name, times): &(&'static str, crate::report::Distribution)| {
        let mut cells = vec![(*name).to_owned(), times.count().to_string()];
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    Table { title: kind.name.to_owned(), header, lines: kind.stages.iter().map(row).collect() }
}
