//! Which charts does a cluster draw?

use super::Findings;
use super::measured::{Run, Transport};
use super::rows::levels;
use crate::cluster::LevelLoad;
use crate::slowdown::{self, OURS, Percentile};
use apus_report::chart::{Axis, Bar, Bars, Group, Look, Plot, Scale, decades, short_number};
use apus_report::result::table::{ratio_in_words, spread_in_words};
use apus_report::result::{Ratio, short};
use apus_report::stats::Spread;

/// All of them, in the order of the page.
pub(super) fn all(findings: &Findings) -> Vec<Plot> {
    let mut plots = vec![headline(findings), cdf(findings)];
    plots.extend(ratios(findings));
    plots.push(farthest(findings));
    plots.extend(beside(findings));
    plots.extend(switch(findings));
    plots.extend(machine(findings));
    plots
}

/// The picture that all this is about.
pub(super) fn headline(findings: &Findings) -> Plot {
    let chart = slowdown::by_size(
        &findings.curves,
        &[(Percentile::P50, Look::Faint), (Percentile::P99, Look::Plain)],
    );
    let caption = "Solid: 99th percentile. Dashed: median. Each point closes a group of sizes; 1 is the \
                   best possible.";
    Plot::of_lines("slowdown-p99", "Slowdown by message size", caption, &chart)
}

/// How short messages fared.
pub(super) fn cdf(findings: &Findings) -> Plot {
    let caption = "Share of the smaller half of the messages that took no longer than a time, from the \
                   instant they were due to the complete reply.";
    let chart = slowdown::cdf(&findings.curves);
    Plot::of_lines("short-cdf", "Latency of short messages", caption, &chart)
}

/// One in a thousand.
pub(super) fn farthest(findings: &Findings) -> Plot {
    let chart = slowdown::by_size(&findings.curves, &[(Percentile::P999, Look::Plain)]);
    let caption = "99.9th percentile: what one message in a thousand takes or more.";
    Plot::of_lines("slowdown-p999", "The far tail by message size", caption, &chart)
}

/// How many times longer short messages take with others than with apus.
pub(super) fn ratios(findings: &Findings) -> Option<Plot> {
    let ratios = &findings.outcome.ratios;
    let bar = |figure: &str| {
        let bar = move |(name, ratio): &(String, Ratio)| {
            // What ran beside another transport is held against itself in a chart of its own.
            let (transport, OURS) = name.strip_prefix(figure)?.split_once('/')? else {
                return None;
            };
            Some(Bar {
                name: transport.to_owned(),
                colour: colour(findings, transport),
                look: Look::Plain,
                value: ratio.median,
                range: Some((ratio.min, ratio.max)),
                says: ratio_in_words(ratio),
            })
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
    let about = ("ratios", "How many times slower than apus", caption);
    Some(bars(about, ("percentile of short messages", "times"), groups))
}

/// What transports that run at the same time do to each other.
pub(super) fn beside(findings: &Findings) -> Option<Plot> {
    let transports = &findings.transports;
    let both: Vec<&Transport> = transports.iter().filter(|each| !each.beside.is_empty()).collect();
    let alone =
        |name: &str| transports.iter().find(|each| each.name == name && each.beside.is_empty());
    let group = |name: &str| {
        let of = |transport: &Transport, name: String, colour| {
            let spread = transport.spread(|run| run.summary.short.p99);
            bar(name, colour, &spread)
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
    let about = ("beside", "What each does to the other", caption);
    Some(bars(about, ("transport", "p99 slowdown"), names.into_iter().map(group).collect()))
}

/// What happened in the switch: its queues, what it dropped, which priorities were used.
pub(super) fn switch(findings: &Findings) -> Vec<Plot> {
    let known: Vec<(String, Vec<LevelLoad>)> =
        findings.transports.iter().filter_map(|each| Some((each.row(), levels(each)?))).collect();
    let queues = stack(
        &known,
        (
            "switch-queue",
            "Queues of the switch",
            "Bytes that wait at a port, by priority: mean over ports, \
             looks and runs. P7 leaves first.",
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

/// Priorities upon each other, one stack per transport; `None` if there is nothing.
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
            // P7 looks like apus, whose control packets and shortest messages it carries.
            let colour = 7 - index % 8;
            Bar { name: format!("P{index}"), colour, look: Look::Plain, value, range: None, says }
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

/// What it cost: throughput, processor time, and what was left of it.
pub(super) fn machine(findings: &Findings) -> Vec<Plot> {
    let one = |about, unit, figure: &dyn Fn(&Run) -> Option<f64>| {
        let bar = |transport: &Transport| {
            let spread = transport.spread_of(figure)?;
            let name = transport.row();
            let bar = bar(name.clone(), colour(findings, &name), &spread);
            Some(Group { label: name, bars: vec![bar] })
        };
        let groups: Vec<Group> = findings.transports.iter().filter_map(bar).collect();
        (!groups.is_empty()).then(|| linear(about, ("transport", unit), groups))
    };
    let throughput = one(
        (
            "throughput",
            "Throughput",
            "Payload that all nodes received together, requests and replies. \
             Transports that ran at the same time were offered a part of the load each.",
        ),
        "Mbit/s",
        &|run| Some(run.throughput / 1e6),
    );
    let cpu = one(
        (
            "cpu",
            "Processor time",
            "Seconds of all nodes' processes for each 10⁹ bytes of payload received, \
             the kernel's work for them included.",
        ),
        "s per GB",
        &|run| Some(run.cpu_per_gb),
    );
    let idle = one(
        (
            "idle",
            "What was left of the cores",
            "Share of the time in which the cores had nothing to do. \
             Where little is left, the cores and not the links are what messages wait for.",
        ),
        "% of time",
        &|run| run.idle.map(|idle| 100.0 * idle),
    );
    [throughput, cpu, idle].into_iter().flatten().collect()
}

/// A bar with its whisker.
fn bar(name: String, colour: usize, spread: &Spread) -> Bar {
    let says = spread_in_words(spread);
    let range = Some((spread.min, spread.max));
    Bar { name, colour, look: Look::Plain, value: spread.median, range, says }
}

/// Bars over an axis from 0.
fn linear(
    (name, title, caption): (&str, &str, &str),
    (label, unit): (&str, &str),
    groups: Vec<Group>,
) -> Plot {
    let y = Axis::linear(unit, ends(&groups).into_iter(), short_number);
    let bars = Bars { description: title, label, y, groups, stacked: false };
    Plot::of_bars(name, title, caption, &bars)
}

/// Bars over an axis from 0, or over a logarithmic one that holds 1 if a reader prefers that.
fn bars(
    (name, title, caption): (&str, &str, &str),
    (label, unit): (&str, &str),
    groups: Vec<Group>,
) -> Plot {
    let ends = ends(&groups);
    let ticks = decades(ends.iter().copied().chain([1.0]), short_number);
    let y = Axis::linear(unit, ends.into_iter(), short_number).or(Scale::Logarithmic, ticks);
    let bars = Bars { description: title, label, y, groups, stacked: false };
    Plot::of_bars(name, title, caption, &bars)
}

/// The upper and lower ends of bars and whiskers.
fn ends(groups: &[Group]) -> Vec<f64> {
    let bars = groups.iter().flat_map(|group| &group.bars);
    let ends = bars.flat_map(|bar| {
        let (least, greatest) = bar.range.unwrap_or((bar.value, bar.value));
        [bar.value, least, greatest]
    });
    ends.collect()
}

/// Number of a transport's colour: the same in all charts.
pub(super) fn colour(findings: &Findings, row: &str) -> usize {
    slowdown::colour(findings.curves.iter().map(|curve| &curve.name[..]), row)
}
