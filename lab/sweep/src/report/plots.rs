//! Charts of a sweep.

use apus_report::chart::{
    Axis, Bar, Chart, Group, Heading, Line, Plot, Point, Scale, Stroke, Ticks, bytes, short_number,
    steps,
};
use apus_report::result::short;

use super::reference::Reference;
use super::setting::{Contender, Setting};
use crate::Bin;
use apus_sim::published::{self, Scheme};

/// Most groups of bars that a reader can distinguish.
const MOST_GROUPS: usize = 16;

/// Returns the charts of one setting.
pub(super) fn of_setting(setting: &Setting) -> Vec<Plot> {
    let reference = Reference::of(setting);
    let mut plots = Vec::new();
    if setting.contenders.iter().any(Contender::is_steady) {
        plots.push(by_size(setting, &reference, &P99));
        plots.push(by_size(setting, &reference, &P50));
    }
    plots.extend(queues(setting, &reference, false));
    plots.extend(queues(setting, &reference, true));
    plots.extend(levels(setting));
    plots.push(links(setting));
    plots
}

/// One of the two plotted percentiles.
struct Percentile {
    name: &'static str,
    title: &'static str,
    ours: fn(&Bin) -> Option<f64>,
    theirs: fn(&published::SlowdownPoint) -> f64,
}

const P50: Percentile = Percentile {
    name: "slowdown-p50",
    title: "Median slowdown by message size",
    ours: |bin| bin.p50,
    theirs: |point| point.median,
};

const P99: Percentile = Percentile {
    name: "slowdown-p99",
    title: "99th percentile of slowdown by message size",
    ours: |bin| bin.p99,
    theirs: |point| point.p99,
};

/// Slowdown by size, on the axes of the paper's figures 12 and 13.
fn by_size(setting: &Setting, reference: &Reference, which: &Percentile) -> Plot {
    let upto = |size: u32| format!("up to {}", bytes(f64::from(size)));
    let mut sizes = Vec::new();
    let mut lines = Vec::new();
    for (index, contender) in setting.contenders.iter().enumerate() {
        let bins = contender.by_size();
        let points = bins.iter().filter_map(|bin| {
            let y = (which.ours)(bin)?;
            let says = format!("{} of {} messages", short(y), bin.count).into();
            Some(Point { x: bin.percentile, y, range: None, at: upto(bin.upto).into(), says })
        });
        let colour = colour(&contender.name, index);
        let (name, points) = (contender.name[..].into(), points.collect());
        lines.push(Line { name, colour, stroke: Stroke::Plain, points });
        if sizes.is_empty() {
            sizes = bins;
        }
    }
    // Published values beyond the axis are drawn at its end.
    let ours = lines.iter().flat_map(|line: &Line<'_>| &line.points);
    let greatest = ours.map(|point| point.y).fold(1.0, f64::max);
    for row in reference.slowdowns.map_or(&[][..], |figure| &figure.rows) {
        let (colour, stroke) = published_stroke(row.scheme, setting);
        let points = row.points().map(|point| {
            let (x, y) = (f64::from(point.percent), (which.theirs)(&point));
            Point { x, y, range: None, at: upto(point.bytes).into(), says: short(y).into() }
        });
        let (name, points) = (format!("{} (published)", row.scheme).into(), points.collect());
        lines.push(Line { name, colour, stroke, points });
    }
    let ticks = slowdown_ticks(greatest);
    let chart = Chart {
        description: which.title,
        x: Axis::new(
            "message size (axis: percentile of messages)",
            Scale::Linear,
            size_ticks(&sizes),
        ),
        y: Axis::new("slowdown", Scale::Logarithmic, ticks)
            .or(Scale::Linear, steps(greatest, short_number)),
        lines,
    };
    let caption = "Each point closes a percentile of the messages, smallest first; 1 is the best \
                   possible. Dashed and dotted: published curves.";
    Plot::of_lines(which.name, which.title, caption, &chart)
}

/// Ticks of the sizes: at the percentiles where bins end, labelled where there is room.
fn size_ticks(bins: &[Bin]) -> Ticks {
    let label = |bin: &Bin| {
        let round = bin.percentile % 10.0 == 0.0;
        let text =
            if round { bytes(f64::from(bin.upto)).replace(' ', "\u{a0}") } else { String::new() };
        (bin.percentile, text)
    };
    let mut ticks = vec![(0.0, String::new())];
    ticks.extend(bins.iter().map(label));
    if ticks.len() == 1 {
        ticks.push((100.0, String::new()));
    }
    ticks
}

/// 1 to 100, as in the paper, and beyond if need be.
fn slowdown_ticks(greatest: f64) -> Ticks {
    let mut ticks = Vec::new();
    let mut power = 1.0;
    loop {
        for step in [1.0, 2.0, 5.0] {
            let tick = step * power;
            ticks.push((tick, short_number(tick)));
            if tick >= 100.0 && tick >= greatest {
                return ticks;
            }
        }
        power *= 10.0;
    }
}

/// Lengths of queues: the longest or the mean; `None` if no contender has queues.
fn queues(setting: &Setting, reference: &Reference, longest: bool) -> Option<Plot> {
    let with: Vec<(usize, &Contender)> =
        setting.contenders.iter().enumerate().filter(|(_, each)| each.queues().is_some()).collect();
    if with.is_empty() {
        return None;
    }
    let names = ["TOR to spine", "spine to TOR", "TOR to host"];
    let mut groups = names.map(|name| Group { label: name.to_owned(), bars: Vec::new() });
    for (index, contender) in with {
        let mut add = |name: &str, stroke: Stroke, values: [f64; 3]| {
            let colour = colour(&contender.name, index);
            for (group, value) in groups.iter_mut().zip(values) {
                let says = format!("{} KB", short(value));
                group.bars.push(Bar { stroke, ..Bar::value(name, colour, value, says) });
            }
        };
        if let Some(queues) = contender.queues() {
            let value = |(mean, max): (apus_report::stats::Spread, apus_report::stats::Spread)| {
                if longest { max.median } else { mean.median }
            };
            add(&contender.name, Stroke::Plain, queues.map(value));
        }
        if let Some(queues) = reference.queues_of(&contender.name) {
            let value = |queue: published::QueueLength| {
                if longest { queue.max_kb } else { queue.mean_kb }
            };
            add("Homa (published)", Stroke::Faint, queues.map(value));
        }
    }
    let (name, title) = if longest {
        ("queues-max", "Longest queues of switches")
    } else {
        ("queues-mean", "Mean length of queues of switches")
    };
    let caption = "Bytes that wait at an output, without the packet on the link: ";
    let what = if longest { "the most at any output." } else { "mean over time and outputs." };
    let caption = format!("{caption}{what}");
    let heading = Heading { name, title, caption: &caption };
    Some(Plot::bars(heading, ("outputs", "KB"), groups.to_vec(), false))
}

/// Returns the share of the bytes on each level of priority; `None` if no contender uses levels.
fn levels(setting: &Setting) -> Option<Plot> {
    let with: Vec<(usize, &Contender)> = setting
        .contenders
        .iter()
        .enumerate()
        .filter(|(_, each)| {
            each.runs.iter().any(|run| run.level_shares.iter().any(|share| *share > 0.0))
        })
        .collect();
    if with.is_empty() {
        return None;
    }
    let group = |level: usize| {
        let share = |(index, contender): &(usize, &Contender)| {
            let value = 100.0 * contender.spread(|run| run.level_shares[level]).median;
            bar(contender, *index, value, format!("{} %", short(value)))
        };
        Group { label: format!("P{level}"), bars: with.iter().map(share).collect() }
    };
    let caption = "Share of the bytes on links to hosts by level; P7 leaves first.";
    let heading = Heading { name: "levels", title: "Use of priority levels", caption };
    Some(Plot::bars(heading, ("priority level", "% of bytes"), (0..8).map(group).collect(), false))
}

/// Returns the use of the links to hosts.
fn links(setting: &Setting) -> Plot {
    let busy = |each: &Contender| each.spread(|run| run.achieved_load).median;
    let wasted = |each: &Contender| each.spread(|run| run.wasted).median;
    let group = |name: &str, of: &dyn Fn(&Contender) -> f64| {
        let share = |(index, contender): (usize, &Contender)| {
            let value = 100.0 * of(contender);
            bar(contender, index, value, format!("{} %", short(value)))
        };
        let bars = setting.contenders.iter().enumerate().map(share);
        Group { label: name.to_owned(), bars: bars.collect() }
    };
    let groups = vec![
        group("busy", &busy),
        group("wasted", &wasted),
        group("idle otherwise", &|each| (1.0 - busy(each) - wasted(each)).max(0.0)),
    ];
    let caption = "Share of the time of links to hosts. Wasted: idle although the receiver knew of a \
                   message and withheld grants.";
    let title = "Utilisation and wasted bandwidth";
    let heading = Heading { name: "utilisation", title, caption };
    Plot::bars(heading, ("links to hosts", "% of time"), groups, false)
}

/// Charts over all settings of a sweep; empty for a single setting.
pub(super) fn overview(settings: &[Setting]) -> Vec<Plot> {
    if settings.len() < 2 {
        return Vec::new();
    }
    let mut plots = vec![achieved(settings)];
    if settings.len() <= MOST_GROUPS {
        plots.push(compared(settings, "p99-small", "Greatest p99 of the smaller half", |each| {
            each.slowdown(|of| of.small_half_p99_max).map(|spread| spread.median)
        }));
        plots.push(compared(settings, "mean-by-bytes", "Mean slowdown by bytes", |each| {
            each.slowdown(|of| of.mean_by_bytes).map(|spread| spread.median)
        }));
    }
    plots
}

/// Achieved against offered load: one line for settings that differ in load alone.
fn achieved(settings: &[Setting]) -> Plot {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for setting in settings {
        let without: Vec<&str> =
            setting.label.split(' ').filter(|part| !part.starts_with("load=")).collect();
        for contender in &setting.contenders {
            let name = [&[&contender.name[..]][..], &without].concat().join(" ");
            let index = lines.iter().position(|each| each.name == name).unwrap_or_else(|| {
                let colour = lines.len() % 8;
                let (name, points) = (name.into(), Vec::new());
                lines.push(Line { name, colour, stroke: Stroke::Plain, points });
                lines.len() - 1
            });
            let (x, y) = (setting.load(), contender.spread(|run| run.achieved_load).median);
            let steady = if contender.is_steady() { "" } else { ", no steady state" };
            let (at, says) = (format!("offered {}", short(x)), format!("{}{steady}", short(y)));
            let (at, says) = (at.into(), says.into());
            lines[index].points.push(Point { x, y, range: None, at, says });
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let diagonal = [0.0, 1.0].map(|x| {
        let (at, says) = (format!("offered {}", short(x)).into(), short(x).into());
        Point { x, y: x, range: None, at, says }
    });
    let (name, points) = ("all that is offered".into(), diagonal.to_vec());
    lines.push(Line { name, colour: 7, stroke: Stroke::Dotted, points });
    let title = "Achieved against offered load";
    let axis = |label| Axis::linear(label, [1.0].into_iter(), short_number);
    let chart =
        Chart { description: title, x: axis("offered load"), y: axis("achieved load"), lines };
    let caption = "Share of the links to hosts that was busy. A line that bends is at its end; \
                   transports that need less for a message begin below the diagonal.";
    Plot::of_lines("achieved-load", title, caption, &chart)
}

/// Returns a figure of all settings, side by side.
fn compared(
    settings: &[Setting],
    name: &str,
    title: &str,
    figure: impl Fn(&Contender) -> Option<f64>,
) -> Plot {
    let group = |setting: &Setting| {
        let value = |(index, contender): (usize, &Contender)| {
            let value = figure(contender)?;
            Some(bar(contender, index, value, short(value)))
        };
        let bars = setting.contenders.iter().enumerate().filter_map(value).collect();
        Group { label: setting.label.clone(), bars }
    };
    let caption = "Settings without a steady state have no bar.";
    let groups = settings.iter().map(group).collect();
    Plot::bars(Heading { name, title, caption }, ("setting", "slowdown"), groups, true)
}

/// Returns the bar of a contender.
fn bar(contender: &Contender, index: usize, value: f64, says: String) -> Bar {
    Bar::value(&contender.name[..], colour(&contender.name, index), value, says)
}

/// Returns the number of a transport's colour: the same in all charts.
pub(super) fn colour(name: &str, index: usize) -> usize {
    match name {
        "apus" => 0,
        "dctcp" => 1,
        "oracle" => 2,
        _ => 3 + index % 5,
    }
}

/// Returns colour and stroke of a published curve: those of the transport that it is compared with,
/// if that transport takes part.
fn published_stroke(scheme: Scheme, setting: &Setting) -> (usize, Stroke) {
    let there = |name: &str| setting.contenders.iter().any(|each| each.name == name);
    match scheme {
        Scheme::Homa => (0, Stroke::Faint),
        Scheme::SrptOracle if there("oracle") => (2, Stroke::Faint),
        Scheme::SrptOracle => (2, Stroke::Dotted),
        Scheme::PFabric => (3, Stroke::Dotted),
        Scheme::Pias => (4, Stroke::Dotted),
        Scheme::PHost => (5, Stroke::Dotted),
        Scheme::Ndp => (6, Stroke::Dotted),
    }
}
