//! How do threads and their gaps look?

use crate::merge::Merged;
use crate::report::cores::{Cores, Stall, Usage};
use serde_json::json;

use super::Shown;
use super::cells::{counted, line, percent, whole};
use apus_report::chart::{Axis, Bar, Bars, Group, Stroke, Plot, short_number};
use apus_report::result::Table;

/// Gaps that are shown one by one; machines get all of them.
const MOST: usize = 20;

/// The report; gaps count from `least` nanoseconds on.
#[must_use]
pub fn cores(merged: &Merged, least: i64) -> Shown {
    let found = Cores::of(merged, least);
    let question = "when did nothing run?";
    let config = json!({ "gap_us": least as f64 / 1e3 });
    let mut shown = Shown::new("cores", question, merged, config, &found);
    shown.table(threads(&found.threads));
    shown.table(stalls(&found.stalls));
    let (count, least) = (found.stalls.len(), whole(least));
    let stood = format!("{} longer than {least} us", counted(count, "gap"));
    shown.sentence(match (count, found.simultaneous()) {
        (0, _) => format!("No thread stood still for more than {least} us while it had work."),
        (_, 0) => format!("{stood} in which a thread had work, never two of a host at once."),
        (_, at_once) => format!(
            "{stood} in which a thread had work; {at_once} of them together with another one of the host: then the host \
             pauses, not a thread."
        ),
    });
    if !found.threads.is_empty() {
        shown.plot(plot(&found.threads));
    }
    shown
}

fn threads(all: &[Usage]) -> Table {
    let row = |it: &Usage| {
        let share = |nanos: i64| percent(nanos as f64 / it.seen.max(1) as f64);
        vec![
            it.thread.clone(),
            it.cpu.to_string(),
            whole(it.seen),
            share(it.worked),
            share(it.slept),
            it.gaps.count().to_string(),
            whole(i64::try_from(it.gaps.sum()).unwrap_or(i64::MAX)),
            whole(it.gaps.percentile(100.0)),
        ]
    };
    Table {
        title: "threads".to_owned(),
        header: line([
            "thread",
            "CPU",
            "seen us",
            "worked",
            "slept",
            "gaps",
            "in gaps us",
            "longest us",
        ]),
        lines: all.iter().map(row).collect(),
    }
}

fn stalls(all: &[Stall]) -> Table {
    let row = |it: &Stall| {
        let [before, after] = &it.between;
        let others = if it.others == 0 { String::new() } else { it.others.to_string() };
        vec![it.name.clone(), whole(it.at), whole(it.lasted), format!("{before} → {after}"), others]
    };
    let shown = all.len().min(MOST);
    Table {
        title: format!("the longest {shown} of {} gaps in work", all.len()),
        header: line(["thread", "at us", "lasted us", "between", "other threads at once"]),
        lines: all.iter().take(MOST).map(row).collect(),
    }
}

fn plot(all: &[Usage]) -> Plot {
    let group = |it: &Usage| {
        let share = |nanos: i64| 100.0 * nanos as f64 / it.seen.max(1) as f64;
        let (worked, slept) = (share(it.worked), share(it.slept));
        let rest = (100.0 - worked - slept).max(0.0);
        let bar = |name: &str, colour, value: f64| Bar {
            name: name.to_owned(),
            colour,
            stroke: Stroke::Plain,
            value,
            range: None,
            says: format!("{value:.1} %"),
        };
        let bars = vec![
            bar("worked", 0, worked),
            bar("asleep", 2, slept),
            bar("spinning, or in the application", 1, rest),
        ];
        Group { label: it.thread.clone(), bars }
    };
    let y = Axis::linear("percent of the time", [100.0].into_iter(), short_number);
    let title = "How threads spent their time";
    let groups = all.iter().map(group).collect();
    let bars = Bars { description: title, label: "threads", y, groups, stacked: true };
    let caption = "Work is what the trace shows as such: looks, sends, passes, calls and replies under way. Whoever \
                   spins records nothing, and the application neither.";
    Plot::of_bars("cores", title, caption, &bars)
}
