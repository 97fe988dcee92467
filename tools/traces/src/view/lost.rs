//! How does what was lost look?

use crate::merge::Merged;
use crate::report::lost::{CauseLine, Lost, Rare, Resend};
use crate::report::{Distribution, Filter};

use super::Shown;
use super::cells::{heads, known, line, percentiles, whole};
use super::shown::curve;
use apus_report::result::Table;

const PERCENTILES: [f64; 4] = [0.0, 50.0, 99.0, 100.0];

/// RESENDs that are shown one by one; machines get all of them.
const MOST: usize = 20;

/// The report on the RPCs that `filter` admits.
#[must_use]
pub fn lost(merged: &Merged, filter: &Filter) -> Shown {
    let found = Lost::of(merged, filter);
    let question = "what was asked for again, and why?";
    let mut shown = Shown::new("lost", question, merged, filter, &found);
    shown.table(causes(&found.causes));
    shown.table(resends(&found.resends));
    shown.table(rare(&found.rare));
    if found.resends.is_empty() {
        shown.sentence("Nothing was asked for again.".to_owned());
    }
    let lines: Vec<(&str, &Distribution)> = found
        .causes
        .iter()
        .filter(|it| it.wait.count() > 0)
        .map(|it| (it.cause.as_str(), &it.wait))
        .collect();
    if !lines.is_empty() {
        let caption = "From a RESEND until some of what it asks for came: so many percent took that long at most.";
        shown.plot(curve("lost", "Waiting for what was asked for again", caption, &lines));
    }
    if !merged.traces_all() && found.causes.iter().any(|it| it.cause.starts_with("unknown")) {
        shown.note(
            "only some RPCs are traced; of the others RESENDs are recorded, but not their causes"
                .to_owned(),
        );
    }
    shown
}

fn causes(all: &[CauseLine]) -> Table {
    let mut header = line(["cause", "RESENDs", "answered"]);
    header.extend(heads(&PERCENTILES));
    let row = |CauseLine { cause, resends, wait }: &CauseLine| {
        let mut cells = vec![cause.clone(), resends.to_string(), wait.count().to_string()];
        cells.extend(percentiles(wait, &PERCENTILES));
        cells
    };
    Table {
        title: "why bytes were asked for again, and how long they took to come".to_owned(),
        header,
        lines: all.iter().map(row).collect(),
    }
}

fn resends(all: &[Resend]) -> Table {
    let row = |it: &Resend| {
        let length = it.length.map_or_else(|| "all".to_owned(), |length| length.to_string());
        vec![
            it.id.to_string(),
            whole(it.at),
            it.message.to_owned(),
            format!("{length} from {}", it.offset),
            known(it.wait),
            it.cause.clone(),
        ]
    };
    let shown = all.len().min(MOST);
    Table {
        title: format!("the first {shown} of {} RESENDs", all.len()),
        header: line(["RPC", "at us", "message", "bytes", "waited us", "cause"]),
        lines: all.iter().take(MOST).map(row).collect(),
    }
}

fn rare(all: &[Rare]) -> Table {
    let row = |it: &Rare| {
        let reason = it.reason.clone().unwrap_or_default();
        vec![it.event.to_owned(), reason, it.process.clone(), it.count.to_string()]
    };
    Table {
        title: "what should be rare".to_owned(),
        header: line(["event", "reason", "process", "count"]),
        lines: all.iter().map(row).collect(),
    }
}
