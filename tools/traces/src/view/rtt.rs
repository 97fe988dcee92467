//! How does the distribution of round trips look?

use crate::merge::Merged;
use crate::report::Filter;
use crate::report::rtt::{Class, Rtt, Slowest};

use super::Shown;
use super::cells::{counted, heads, line, micros, percent, percentiles, whole};
use super::shown::curve;
use apus_report::result::Table;

const PERCENTILES: [f64; 7] = [0.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0];

/// Circumstances that are shown; machines get all of them.
const MOST: usize = 12;

/// The report on the RPCs that `filter` admits.
#[must_use]
pub fn rtt(merged: &Merged, filter: &Filter) -> Shown {
    let found = Rtt::of(merged, filter);
    let question = "how are round trips distributed, and what have the slowest in common?";
    let mut shown = Shown::new("rtt", question, merged, filter, &found);
    shown.table(classes(&found.classes));
    if let Some(slowest) = &found.slowest {
        shown.table(stages(slowest));
        shown.table(circumstances(slowest));
        shown.table(named(slowest));
        shown.sentence(format!(
            "The slowest 1 % are {}: at least {:.2} times as long as the median of their length.",
            counted(slowest.rpcs, "RPC"),
            slowest.slower_than_median
        ));
        let names: Vec<String> = found.classes.iter().map(name).collect();
        let lines: Vec<_> =
            names.iter().zip(&found.classes).map(|(name, it)| (name.as_str(), &it.rtt)).collect();
        let caption = "From call to return at the client: so many percent of all RPCs of about a length took that long \
                       at most.";
        shown.plot(curve("rtt", "Round trips", caption, &lines));
    } else {
        shown.note(super::shown::nothing(merged, "RPC from its call to its return"));
    }
    if found.incomplete > 0 {
        shown.note(super::shown::left_out(found.incomplete));
    }
    shown
}

fn name(class: &Class) -> String {
    match class.upto_bytes {
        Some(bytes) => format!("up to {bytes} B"),
        None => "longer".to_owned(),
    }
}

fn classes(all: &[Class]) -> Table {
    let mut header = line(["longer message", "RPCs", "mean us"]);
    header.extend(heads(&PERCENTILES));
    let row = |class: &Class| {
        let rtt = &class.rtt;
        let mut cells = vec![name(class), rtt.count().to_string(), micros(rtt.mean())];
        cells.extend(percentiles(rtt, &PERCENTILES));
        cells
    };
    Table { title: "round trips".to_owned(), header, lines: all.iter().map(row).collect() }
}

fn stages(slowest: &Slowest) -> Table {
    let row = |it: &crate::report::rtt::Excess| {
        vec![
            format!("{}: {}", it.stage.place, it.stage.name),
            micros(it.slowest),
            micros(it.usual),
            micros(it.slowest - it.usual),
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
        vec![it.what.clone(), percent(it.of_slowest), percent(it.of_others)]
    };
    Table {
        title: "what more of the slowest were in".to_owned(),
        header: line(["circumstance", "of the slowest", "of all others"]),
        lines: slowest.circumstances.iter().take(MOST).map(row).collect(),
    }
}

fn named(slowest: &Slowest) -> Table {
    let row = |it: &crate::report::rtt::Named| {
        let most = it.most.map_or_else(String::new, |it| format!("{}: {}", it.place, it.name));
        vec![it.id.to_string(), whole(it.at), whole(it.rtt), most]
    };
    Table {
        title: "the slowest".to_owned(),
        header: line(["RPC", "called at us", "RTT us", "most beyond the usual"]),
        lines: slowest.named.iter().map(row).collect(),
    }
}
