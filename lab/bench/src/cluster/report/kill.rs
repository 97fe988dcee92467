//! Effect of the kill of a process on the others: figures, ratios, notes and a table.

use serde_json::json;

use super::input::{Run, Transport};
use crate::cluster::{KillEffect, Period, Recovery};
use apus_report::result::table::spread_in_words;
use apus_report::result::{Figure, Ratio, Row, Table};
use apus_report::stats::Spread;

/// Maximum delay of a kill without a note, in milliseconds. Chosen by us: a tenth of the expected
/// recovery time.
const LATE_MS: f64 = 100.0;

/// Selects a set of requests.
type Set = fn(&KillEffect) -> Recovery;

/// Selects a period of a run.
type Selector = fn(&Recovery) -> Period;

/// A set of requests by its prefix in names of figures, and in words.
const SETS: [(&str, &str, Set); 2] =
    [("", "all others", |kill| kill.others), ("host_", "its host's", |kill| kill.host)];

/// A period by its name in names of figures, and in words.
const PERIODS: [(&str, &str, Selector); 3] = [
    ("before_kill", "before", |recovery| recovery.before),
    ("second_after_kill", "second after", |recovery| recovery.first_second),
    ("later", "later", |recovery| recovery.later),
];

/// Returns the figure of each run; `None` if a run had no kill.
fn spread(transport: &Transport, figure: impl Fn(&KillEffect) -> f64) -> Option<Spread> {
    transport.spread_of(|run| run.kill.as_ref().map(&figure))
}

/// Adds the figures of kills to a transport's row.
pub(super) fn with_kill(mut row: Row, transport: &Transport) -> Row {
    let kills: Vec<KillEffect> = transport.runs.iter().filter_map(|run| run.kill).collect();
    if kills.is_empty() {
        return row;
    }
    for (prefix, _, set) in SETS {
        for (name, _, period) in PERIODS {
            let p99 = spread(transport, |kill| period(&set(kill)).p99);
            row = row.with_known(&format!("{prefix}short_p99_{name}"), p99.map(Figure::Spread));
        }
    }
    let messages = |set: Set| {
        let count =
            |period: Selector| kills.iter().map(|kill| period(&set(kill)).messages).sum::<u64>();
        let counts = PERIODS.map(|(name, _, period)| (name.to_owned(), json!(count(period))));
        serde_json::Value::Object(counts.into_iter().collect())
    };
    for (prefix, _, set) in SETS {
        row = row.with(&format!("{prefix}short_messages"), Figure::Detail(messages(set)));
    }
    let sum = |count: fn(&KillEffect) -> u64| Figure::Count(kills.iter().map(count).sum());
    row.with("calls_to_killed", sum(|kill| kill.to_killed.due))
        .with("calls_to_killed_lost", sum(|kill| kill.to_killed.due - kill.to_killed.completed))
        .with("calls_from_killed", sum(|kill| kill.from_killed))
        .with_known("kill_late_ms", spread(transport, |kill| kill.late_ms).map(Figure::Spread))
}

/// Returns how p99 of short messages after the kill compares with that before it, run by run.
pub(super) fn ratios(transports: &[Transport]) -> Vec<(String, Ratio)> {
    let mut ratios = Vec::new();
    for transport in transports {
        for (prefix, _, set) in SETS {
            let [before, after @ ..] = PERIODS;
            let values = |period: Selector| {
                let p99 = |run: &Run| run.kill.map(|kill| period(&set(&kill)).p99);
                transport.runs.iter().filter_map(p99).collect::<Vec<f64>>()
            };
            let divisor = values(before.2);
            for (name, _, period) in after {
                let name = format!("{prefix}short_p99 {name}/before_kill {}", transport.row());
                ratios.extend(Ratio::over(&values(period), &divisor).map(|ratio| (name, ratio)));
            }
        }
    }
    ratios
}

/// Returns a note about a transport's kills.
pub(super) fn note(transport: &Transport) -> Option<String> {
    let late = spread(transport, |kill| kill.late_ms).filter(|late| late.max > LATE_MS)?;
    Some(format!(
        "the process of {} was killed {:.0} ms late in one run: the second after that begins when it was planned",
        transport.row(),
        late.max
    ))
}

/// Returns a table with two lines for each transport; `None` if no process was killed.
pub(super) fn table(transports: &[Transport]) -> Option<Table> {
    let line = |transport: &Transport, (_, words, set): (&str, &str, Set)| {
        let p99 = PERIODS.map(|(_, _, period)| {
            spread(transport, |kill| period(&set(kill)).p99).as_ref().map(spread_in_words)
        });
        let cells = p99.into_iter().collect::<Option<Vec<String>>>()?;
        Some([transport.row(), words.to_owned()].into_iter().chain(cells).collect::<Vec<String>>())
    };
    let lines = transports.iter().flat_map(|each| SETS.map(|set| line(each, set)));
    let lines: Vec<Vec<String>> = lines.flatten().collect();
    let header = ["", "requests of"].into_iter().chain(PERIODS.map(|(_, words, _)| words));
    let title = "short p99 around the kill of a process";
    (!lines.is_empty()).then(|| Table::new(title, header, lines))
}
