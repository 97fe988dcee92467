//! Charts of a cluster: ratios, concurrent transports, the switch, the machine.

use super::analysis::Analysis;
use super::input::{Run, Transport};
use super::rows::levels;
use crate::cluster::LevelLoad;
use crate::slowdown::{self, OURS};
use apus_report::chart::{Axis, Bar, Bars, Group, Heading, Plot, short_number};
use apus_report::result::{Ratio, short};
use apus_report::stats::Spread;

/// Returns how many times longer short messages take with others than with apus.
pub(super) fn ratios(analysis: &Analysis) -> Option<Plot> {
    let ratios = &analysis.outcome.ratios;
    let bar = |figure: &str| {
        let bar = move |(name, ratio): &(String, Ratio)| {
            // Concurrent transports are compared with their isolated runs in a separate chart.
            let (transport, OURS) = name.strip_prefix(figure)?.split_once('/')? else {
                return None;
            };
            let Ratio { median, min, max, .. } = *ratio;
            Some(Bar::spread(transport, colour(analysis, transport), &Spread { median, min, max }))
        };
        ratios.iter().filter_map(bar).collect::<Vec<Bar>>()
    };
    let group = |label: &str, figure| Group { label: label.to_owned(), bars: bar(figure) };
    let groups = vec![group("p99", "short_p99 "), group("median", "short_p50 ")];
    if groups[0].bars.is_empty() {
        return None;
    }
    let caption = "Slowdown of short messages divided by that with apus, run by run: median, and whiskers to \
                   the least and greatest run.";
    let heading = Heading { name: "ratios", title: "How many times slower than apus", caption };
    Some(Plot::bars(heading, ("percentile of short messages", "times"), groups, true))
}

/// Returns the chart of the mutual effect of concurrent transports.
pub(super) fn beside(analysis: &Analysis) -> Option<Plot> {
    let transports = &analysis.transports;
    let both: Vec<&Transport> = transports.iter().filter(|each| !each.beside.is_empty()).collect();
    let alone =
        |name: &str| transports.iter().find(|each| each.name == name && each.beside.is_empty());
    let group = |name: &str| {
        let of = |transport: &Transport, name: String, colour| {
            let spread = transport.spread(|run| run.summary.short.p99);
            Bar::spread(name, colour, &spread)
        };
        let mut bars: Vec<Bar> =
            alone(name).map(|each| of(each, "alone".to_owned(), 0)).into_iter().collect();
        let beside = both.iter().filter(|each| each.name == name);
        bars.extend(beside.map(|each| {
            let name = format!("beside {}", each.beside.join("+"));
            of(
                each,
                name,
                1 + both.iter().position(|other| other.beside == each.beside).unwrap_or(0) % 7,
            )
        }));
        Group { label: name.to_owned(), bars }
    };
    let mut names: Vec<&str> = both.iter().map(|each| &each.name[..]).collect();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let caption = "p99 slowdown of short messages of transports that share the network with each other, \
                   each with its part of the load, and of the same ones alone.";
    let heading = Heading { name: "beside", title: "What each does to the other", caption };
    let groups = names.into_iter().map(group).collect();
    Some(Plot::bars(heading, ("transport", "p99 slowdown"), groups, true))
}

/// Returns the charts of the switch: its queues, its drops, and the use of priorities.
pub(super) fn switch(analysis: &Analysis) -> Vec<Plot> {
    let known: Vec<(String, Vec<LevelLoad>)> =
        analysis.transports.iter().filter_map(|each| Some((each.row(), levels(each)?))).collect();
    let queues = stack(
        &known,
        (
            "switch-queue",
            "Queues of the switch",
            "Bytes that wait at a port, by priority: mean over ports, \
             samples and runs. P7 leaves first.",
        ),
        "kB",
        |level, _| level.queue_mean / 1e3,
    );
    let drops = stack(
        &known,
        (
            "switch-drops",
            "Drops of the switch",
            "Packets that found their queue full, by priority, in all \
             runs.",
        ),
        "packets",
        |level, _| level.drops as f64,
    );
    let used = stack(
        &known,
        (
            "switch-bytes",
            "Use of priorities",
            "Share of the bytes that left the switch, by priority. P7 \
             leaves first.",
        ),
        "% of bytes",
        |level, all| {
            let bytes: u64 = all.iter().map(|level| level.bytes).sum();
            100.0 * level.bytes as f64 / bytes.max(1) as f64
        },
    );
    [queues, drops, used].into_iter().flatten().collect()
}

/// Returns priorities on top of each other, one stack per transport; `None` if all are 0.
fn stack(
    known: &[(String, Vec<LevelLoad>)],
    (name, title, caption): (&str, &str, &str),
    unit: &str,
    figure: impl Fn(&LevelLoad, &[LevelLoad]) -> f64,
) -> Option<Plot> {
    let group = |(name, levels): &(String, Vec<LevelLoad>)| {
        let bar = |(index, level): (usize, &LevelLoad)| {
            let value = figure(level, levels);
            let says = format!("{} {unit}", short(value));
            // P7 has the colour of apus, because it carries apus's control packets and shortest
            // messages.
            let colour = 7 - index % 8;
            Bar::value(format!("P{index}"), colour, value, says)
        };
        Group { label: name.clone(), bars: levels.iter().enumerate().rev().map(bar).collect() }
    };
    let groups: Vec<Group> = known.iter().map(group).collect();
    let sums = groups.iter().map(|group| group.bars.iter().map(|bar| bar.value).sum::<f64>());
    let greatest = sums.fold(0.0, f64::max);
    if greatest == 0.0 {
        return None;
    }
    let y = Axis::linear(unit, [greatest].into_iter(), short_number);
    let bars = Bars { description: title, label: "transport", y, groups, stacked: true };
    Some(Plot::of_bars(name, title, caption, &bars))
}

/// Returns the charts of the machine: throughput, processor time, and idle time.
pub(super) fn machine(analysis: &Analysis) -> Vec<Plot> {
    let one = |heading, unit, figure: &dyn Fn(&Run) -> Option<f64>| {
        let bar = |transport: &Transport| {
            let spread = transport.spread_of(figure)?;
            let name = transport.row();
            let bar = Bar::spread(name.clone(), colour(analysis, &name), &spread);
            Some(Group { label: name, bars: vec![bar] })
        };
        let groups: Vec<Group> = analysis.transports.iter().filter_map(bar).collect();
        (!groups.is_empty()).then(|| Plot::bars(heading, ("transport", unit), groups, false))
    };
    let throughput = one(
        Heading {
            name: "throughput",
            title: "Throughput",
            caption: "Payload that all nodes received together, requests and replies. \
             Transports that ran at the same time were offered a part of the load each.",
        },
        "Mbit/s",
        &|run| Some(run.throughput / 1e6),
    );
    let cpu = one(
        Heading {
            name: "cpu",
            title: "Processor time",
            caption: "Seconds of all nodes' processes for each 10⁹ bytes of payload received, \
             the kernel's work for them included.",
        },
        "s per GB",
        &|run| Some(run.cpu_per_gb),
    );
    let idle = one(
        Heading {
            name: "idle",
            title: "What was left of the cores",
            caption: "Share of the time in which the cores had nothing to do. \
             Where little is left, the cores and not the links are what messages wait for.",
        },
        "% of time",
        &|run| run.idle.map(|idle| 100.0 * idle),
    );
    [throughput, cpu, idle].into_iter().flatten().collect()
}

/// Returns the number of a transport's colour, the same in all charts.
pub(super) fn colour(analysis: &Analysis, row: &str) -> usize {
    slowdown::colour(analysis.curves.iter().map(|curve| &curve.name[..]), row)
}
