//! How does the timeline look?

use crate::merge::Merged;
use crate::report::Filter;
use crate::report::timeline::{Group, Line, Timeline};

use super::Shown;
use super::cells::{counted, difference, heads, line, micros, percent, percentiles, whole};
use apus_report::chart::{Axis, Bar, Bars, Group as Bunch, Stroke, Plot, short_number};
use apus_report::result::Table;

const PERCENTILES: [f64; 4] = [10.0, 50.0, 90.0, 99.0];

/// The report on the RPCs that `filter` admits.
#[must_use]
pub fn timeline(merged: &Merged, filter: &Filter) -> Shown {
    let found = Timeline::of(merged, filter);
    let question = "where do the microseconds of short RPCs go?";
    let mut shown = Shown::new("timeline", question, merged, filter, &found);
    for group in &found.ways {
        shown.table(table(group));
        shown.sentence(sum(group));
        shown.plot(plot(group));
    }
    if found.ways.is_empty() {
        shown.note(super::shown::nothing(merged, "RPC from its call to its return"));
    }
    if found.incomplete > 0 {
        shown.note(super::shown::left_out(found.incomplete));
    }
    shown
}

fn table(group: &Group) -> Table {
    let rtt = group.rtt.mean().max(1.0);
    let row = |Line { stage, rpcs, times }: &Line| {
        let mut cells = vec![format!("{}: {}", stage.place, stage.name), rpcs.to_string()];
        cells.extend([micros(times.mean()), percent(times.mean() / rtt)]);
        cells.extend(percentiles(times, &PERCENTILES));
        cells
    };
    let mut lines: Vec<Vec<String>> = group.stages.iter().map(row).collect();
    let medians = group.sum_of_medians();
    let mut sum = line(["all stages", ""]);
    sum.extend([micros(group.sum_of_means()), percent(group.sum_of_means() / rtt)]);
    sum.extend([String::new(), whole(medians), String::new(), String::new()]);
    let mut measured = vec!["RTT at the client".to_owned(), group.rtt.count().to_string()];
    measured.extend([micros(group.rtt.mean()), percent(1.0)]);
    measured.extend(percentiles(&group.rtt, &PERCENTILES));
    lines.extend([sum, measured]);
    let mut header = line(["stage", "RPCs", "mean us", "share"]);
    header.extend(heads(&PERCENTILES));
    let count = counted(group.rtt.count(), "RPC");
    Table { title: format!("{count} through {}", way(group)), header, lines }
}

fn way(group: &Group) -> &'static str {
    if group.way == "memory" { "shared memory" } else { "the network" }
}

fn sum(group: &Group) -> String {
    let [means, medians] = group.differences();
    format!(
        "Through {}: the stages' means add up to {} us, {} beside the {} us from call to return at the client; \
         their medians to {} us, {} beside {} us.",
        way(group),
        micros(group.sum_of_means()),
        difference(means),
        micros(group.rtt.mean()),
        whole(group.sum_of_medians()),
        difference(medians),
        whole(group.rtt.median()),
    )
}

fn plot(group: &Group) -> Plot {
    let bunch = |Line { stage, times, .. }: &Line| Bunch {
        label: format!("{} {}", stage.place, stage.name),
        bars: [
            ("mean", 0, Stroke::Plain, times.mean()),
            ("median", 1, Stroke::Plain, times.median() as f64),
        ]
        .into_iter()
        .map(|(name, colour, stroke, nanos)| Bar {
            name: name.to_owned(),
            colour,
            stroke,
            value: (nanos / 1e3).max(0.0),
            range: None,
            says: format!("{} us: {}", micros(nanos), stage.meaning),
        })
        .collect(),
    };
    let groups: Vec<Bunch> = group.stages.iter().map(bunch).collect();
    let values = groups.iter().flat_map(|bunch| &bunch.bars).map(|bar| bar.value);
    let y = Axis::linear("microseconds", values.collect::<Vec<_>>().into_iter(), short_number);
    let title = format!("Stages of RPCs through {}", way(group));
    let bars =
        Bars { description: &title, label: "stages, in their order", y, groups, stacked: false };
    let caption = "How long each stage took, from the call at the left to the return at the right. Means add up to the \
                   mean round trip.";
    Plot::of_bars(&format!("timeline-{}", group.way), &title, caption, &bars)
}
