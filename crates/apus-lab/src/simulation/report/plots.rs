//! Which charts does a sweep draw?

use crate::chart::{
    Axis, Bar, Bars, Chart, Group, Line, Look, Point, Scale, bytes, short_number, standalone, steps,
};
use crate::result::table::short;
use serde::Serialize;

use super::reference::Reference;
use super::setting::{Contender, Setting};
use crate::simulation::sweep::Bin;
use apus_sim::published::{self, Scheme};

/// A chart with what belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// What its file is called, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How it is read.
    pub caption: String,
    /// Class of each line, and what it stands for.
    pub legend: Vec<(String, String)>,
    /// The chart as an `svg` element.
    pub svg: String,
}

/// Most groups of bars that can be told apart.
const MOST_GROUPS: usize = 16;

/// All charts as files of their own: name and content of each.
pub(super) fn files(settings: &[Setting]) -> Vec<(String, String)> {
    let file = |prefix: &str, plot: &Plot| {
        let title = if prefix.is_empty() {
            plot.title.clone()
        } else {
            format!("{}: {prefix}", plot.title)
        };
        let name =
            if prefix.is_empty() { plot.name.clone() } else { format!("{} {}", plot.name, prefix) };
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        (name + ".svg", standalone(&plot.svg, &title, &plot.legend))
    };
    let all = overview(settings);
    let all = all.iter().map(|plot| file("", plot));
    let each = settings.iter().flat_map(|setting| {
        of_setting(setting).iter().map(|plot| file(&setting.label, plot)).collect::<Vec<_>>()
    });
    all.chain(each).collect()
}

/// The charts of one setting.
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

/// One of the two percentiles that are drawn.
struct Percentile {
    name: &'static str,
    title: &'static str,
    ours: fn(&Bin) -> Option<f64>,
    theirs: fn(&published::Point) -> f64,
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
    let mut legend = Vec::new();
    let mut lines = Vec::new();
    let published = reference.slowdowns.map_or(&[][..], |figure| figure.rows);
    for row in published {
        let (colour, look) = published_look(row.scheme, setting);
        let name = format!("{} (published)", row.scheme);
        let points = row.points().map(|point| {
            let y = (which.theirs)(&point);
            let size = bytes(f64::from(point.bytes));
            Point {
                x: f64::from(point.percent),
                y,
                title: format!("{name}, {size}: {}", short(y)).into(),
            }
        });
        lines.push(Line { colour, look, points: points.collect() });
        legend.push((class(colour, look), name));
    }
    let mut sizes = Vec::new();
    for (index, contender) in setting.contenders.iter().enumerate() {
        let bins = contender.by_size();
        let colour = colour(&contender.name, index);
        let points = bins.iter().filter_map(|bin| {
            let y = (which.ours)(bin)?;
            let (name, size) = (&contender.name, bytes(f64::from(bin.upto)));
            let title = format!("{name}, up to {size}: {} of {} messages", short(y), bin.count);
            Some(Point { x: bin.percentile, y, title: title.into() })
        });
        lines.push(Line { colour, look: Look::Plain, points: points.collect() });
        legend.insert(index, (class(colour, Look::Plain), contender.name.clone()));
        if sizes.is_empty() {
            sizes = bins;
        }
    }
    // What others measured beyond the axis is drawn at its end.
    let ours = lines.iter().filter(|line| line.look == Look::Plain).flat_map(|line| &line.points);
    let greatest = ours.map(|point| point.y).fold(1.0, f64::max);
    let chart = Chart {
        description: which.title,
        x: Axis {
            label: "message size (axis: percentile of messages)",
            scale: Scale::Linear,
            ticks: size_ticks(&sizes),
        },
        y: Axis { label: "slowdown", scale: Scale::Logarithmic, ticks: slowdown_ticks(greatest) },
        lines,
    };
    Plot {
        name: which.name.to_owned(),
        title: which.title.to_owned(),
        caption: "Each point closes a percentile of the messages, smallest first; 1 is the best possible. \
                  Dashed and dotted: published curves."
            .to_owned(),
        legend,
        svg: chart.svg(),
    }
}

/// Ticks of the sizes: at the percentiles that bins close, labelled where there is room.
fn size_ticks(bins: &[Bin]) -> Vec<(f64, String)> {
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
fn slowdown_ticks(greatest: f64) -> Vec<(f64, String)> {
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

/// Lengths of queues: the longest or the mean; `None` if nobody has queues.
fn queues(setting: &Setting, reference: &Reference, longest: bool) -> Option<Plot> {
    let with: Vec<(usize, &Contender)> =
        setting.contenders.iter().enumerate().filter(|(_, each)| each.queues().is_some()).collect();
    if with.is_empty() {
        return None;
    }
    let names = ["TOR to spine", "spine to TOR", "TOR to host"];
    let mut legend = Vec::new();
    let mut groups = names.map(|name| Group { label: name.to_owned(), bars: Vec::new() });
    for (index, contender) in with {
        let mut add = |name: &str, look: Look, values: [f64; 3]| {
            let colour = colour(&contender.name, index);
            legend.push((class(colour, look), name.to_owned()));
            for (group, value) in groups.iter_mut().zip(values) {
                let title = format!("{name}, {}: {} KB", group.label, short(value));
                group.bars.push(Bar { colour, look, value, title });
            }
        };
        if let Some(queues) = contender.queues() {
            let value = |(mean, max): (crate::stats::Spread, crate::stats::Spread)| {
                if longest { max.median } else { mean.median }
            };
            add(&contender.name, Look::Plain, queues.map(value));
        }
        if let Some(queues) = reference.queues_of(&contender.name) {
            let value = |queue: published::QueueLength| {
                if longest { queue.max_kb } else { queue.mean_kb }
            };
            add("Homa (published)", Look::Faint, queues.map(value));
        }
    }
    let (name, title) = if longest {
        ("queues-max", "Longest queues of switches")
    } else {
        ("queues-mean", "Mean length of queues of switches")
    };
    let caption = "Bytes that wait at an output, without the packet on the link: ";
    let what = if longest { "the most at any output." } else { "mean over time and outputs." };
    Some(Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: format!("{caption}{what}"),
        legend,
        svg: bars(title, "outputs", "KB", groups.to_vec()),
    })
}

/// Share of the bytes on each level of priority; `None` if nobody uses levels.
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
        let bar = |(index, contender): &(usize, &Contender)| {
            let value = 100.0 * contender.spread(|run| run.level_shares[level]).median;
            let title = format!("{}, level {level}: {} %", contender.name, short(value));
            Bar { colour: colour(&contender.name, *index), look: Look::Plain, value, title }
        };
        Group { label: format!("P{level}"), bars: with.iter().map(bar).collect() }
    };
    let title = "Use of priority levels";
    Some(Plot {
        name: "levels".to_owned(),
        title: title.to_owned(),
        caption: "Share of the bytes on links to hosts by level; P7 leaves first.".to_owned(),
        legend: legend(with.iter().copied()),
        svg: bars(title, "priority level", "% of bytes", (0..8).map(group).collect()),
    })
}

/// What the links to hosts did.
fn links(setting: &Setting) -> Plot {
    let bar = |(index, contender): (usize, &Contender), name: &str, value: f64| {
        let value = 100.0 * value;
        let title = format!("{}, {name}: {} %", contender.name, short(value));
        Bar { colour: colour(&contender.name, index), look: Look::Plain, value, title }
    };
    let busy = |each: &Contender| each.spread(|run| run.achieved_load).median;
    let wasted = |each: &Contender| each.spread(|run| run.wasted).median;
    let group = |name: &str, of: &dyn Fn(&Contender) -> f64| {
        let bars = setting.contenders.iter().enumerate().map(|each| bar(each, name, of(each.1)));
        Group { label: name.to_owned(), bars: bars.collect() }
    };
    let groups = vec![
        group("busy", &busy),
        group("wasted", &wasted),
        group("idle otherwise", &|each| (1.0 - busy(each) - wasted(each)).max(0.0)),
    ];
    let title = "Utilisation and wasted bandwidth";
    Plot {
        name: "utilisation".to_owned(),
        title: title.to_owned(),
        caption: "Share of the time of links to hosts. Wasted: idle although the receiver knew of a message \
                  and withheld grants."
            .to_owned(),
        legend: legend(setting.contenders.iter().enumerate()),
        svg: bars(title, "links to hosts", "% of time", groups),
    }
}

/// Charts over all settings of a sweep; none for a single setting.
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
    let mut names: Vec<String> = Vec::new();
    let mut lines: Vec<Line<'_>> = Vec::new();
    for setting in settings {
        let without: Vec<&str> =
            setting.label.split(' ').filter(|part| !part.starts_with("load=")).collect();
        for contender in &setting.contenders {
            let name = [&[&contender.name[..]][..], &without].concat().join(" ");
            let index = names.iter().position(|each| *each == name).unwrap_or_else(|| {
                let colour = names.len() % 8;
                names.push(name.clone());
                lines.push(Line { colour, look: Look::Plain, points: Vec::new() });
                names.len() - 1
            });
            let (x, y) = (setting.load(), contender.spread(|run| run.achieved_load).median);
            let steady = if contender.is_steady() { "" } else { ", no steady state" };
            let title = format!("{name}: {} of {}{steady}", short(y), short(x)).into();
            lines[index].points.push(Point { x, y, title });
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let legend =
        names.iter().enumerate().map(|(index, name)| (class(index % 8, Look::Plain), name.clone()));
    let diagonal = [0.0, 1.0].map(|x| Point { x, y: x, title: "all that is offered".into() });
    let legend =
        legend.chain([(class(7, Look::Dotted), "all that is offered".to_owned())]).collect();
    lines.push(Line { colour: 7, look: Look::Dotted, points: diagonal.to_vec() });
    let title = "Achieved against offered load";
    let axis = |label| Axis { label, scale: Scale::Linear, ticks: steps(1.0, short_number) };
    let chart =
        Chart { description: title, x: axis("offered load"), y: axis("achieved load"), lines };
    Plot {
        name: "achieved-load".to_owned(),
        title: title.to_owned(),
        caption: "Share of the links to hosts that was busy. A line that bends is at its end; transports \
                  that need less for a message begin below the diagonal."
            .to_owned(),
        legend,
        svg: chart.svg(),
    }
}

/// A figure of all settings, side by side.
fn compared(
    settings: &[Setting],
    name: &str,
    title: &str,
    figure: impl Fn(&Contender) -> Option<f64>,
) -> Plot {
    let group = |setting: &Setting| {
        let bar = |(index, contender): (usize, &Contender)| {
            let value = figure(contender)?;
            let title = format!("{}: {}", setting.name_of(contender), short(value));
            Some(Bar { colour: colour(&contender.name, index), look: Look::Plain, value, title })
        };
        let bars = setting.contenders.iter().enumerate().filter_map(bar).collect();
        Group { label: setting.label.clone(), bars }
    };
    let names = settings.first().map_or(&[][..], |setting| &setting.contenders[..]);
    Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: "Settings without a steady state have no bar.".to_owned(),
        legend: legend(names.iter().enumerate()),
        svg: bars(title, "setting", "slowdown", settings.iter().map(group).collect()),
    }
}

/// Bars over an axis that holds all of them.
fn bars(title: &str, label: &str, unit: &str, groups: Vec<Group>) -> String {
    let values = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.value);
    let ticks = steps(values.fold(0.0, f64::max), short_number);
    let y = Axis { label: unit, scale: Scale::Linear, ticks };
    Bars { description: title, label, y, groups }.svg()
}

fn legend<'a>(contenders: impl Iterator<Item = (usize, &'a Contender)>) -> Vec<(String, String)> {
    let entry = |(index, contender): (usize, &Contender)| {
        (class(colour(&contender.name, index), Look::Plain), contender.name.clone())
    };
    contenders.map(entry).collect()
}

/// Number of a transport's colour: the same in all charts.
pub(super) fn colour(name: &str, index: usize) -> usize {
    match name {
        "apus" => 0,
        "dctcp" => 1,
        "oracle" => 2,
        _ => 3 + index % 5,
    }
}

/// Colour and look of a published curve: that of the transport which it is held against, if that is there.
fn published_look(scheme: Scheme, setting: &Setting) -> (usize, Look) {
    let there = |name: &str| setting.contenders.iter().any(|each| each.name == name);
    match scheme {
        Scheme::Homa => (0, Look::Faint),
        Scheme::SrptOracle if there("oracle") => (2, Look::Faint),
        Scheme::SrptOracle => (2, Look::Dotted),
        Scheme::PFabric => (3, Look::Dotted),
        Scheme::Pias => (4, Look::Dotted),
        Scheme::PHost => (5, Look::Dotted),
        Scheme::Ndp => (6, Look::Dotted),
    }
}

fn class(colour: usize, look: Look) -> String {
    let look = match look {
        Look::Plain => "",
        Look::Faint => " faint",
        Look::Dotted => " dotted",
    };
    format!("c{colour}{look}")
}
