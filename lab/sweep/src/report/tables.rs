//! Tables of a sweep.

use apus_report::result::table::spread_in_words;
use apus_report::result::{Table, short};
use apus_report::stats::Spread;

use super::reference::Reference;
use super::setting::{Contender, Setting};
use crate::{Bin, Figures, Recovery, Slowdown};
use apus_sim::published::{QueueLength, Row};

/// The cell of an unknown figure.
const ABSENT: &str = "–";

/// Returns all tables of one setting: slowdown by size, summaries of slowdown, queues. Published
/// figures are next to the contender that they refer to.
pub(super) fn of_setting(setting: &Setting) -> Vec<Table> {
    let reference = Reference::of(setting);
    let contenders = &setting.contenders;
    let queues = queues(contenders, &reference);
    by_size(contenders, &reference)
        .into_iter()
        .chain([slowdowns(contenders, &reference)])
        .chain(queues)
        .chain([load(contenders)])
        .collect()
}

/// Returns a column for each contender, and a column for its published figures.
fn columns<'a, P, T>(
    contenders: &'a [Contender],
    published: impl Fn(&str) -> Option<P>,
    ours: impl Fn(&'a Contender) -> T,
    theirs: impl Fn(P) -> T,
) -> Vec<T> {
    let column = |each: &'a Contender| {
        [Some(ours(each)), published(&each.name).map(&theirs)].into_iter().flatten()
    };
    contenders.iter().flat_map(column).collect()
}

/// Slowdown by size, one line per bin; `None` if no contender reached a steady state.
fn by_size(contenders: &[Contender], reference: &Reference) -> Option<Table> {
    let bins = contenders.iter().map(Contender::by_size).find(|bins| !bins.is_empty())?;
    let published = |name: &str| reference.row(name);
    let names = columns(
        contenders,
        published,
        |each| each.name.clone(),
        |row| format!("{} (published)", row.scheme),
    );
    let ours: Vec<Vec<Bin>> = contenders.iter().map(Contender::by_size).collect();
    let line = |(index, bin): (usize, &Bin)| {
        let cells = contenders.iter().zip(&ours).flat_map(|(each, bins)| {
            let here = bins.get(index).map_or_else(absent, |bin| pair(bin.p50, bin.p99));
            let there = published(&each.name).map(|row| closing(row, bin.percentile));
            [Some(here), there].into_iter().flatten()
        });
        let what = [percentile(bin.percentile), bin.upto.to_string(), bin.count.to_string()];
        what.into_iter().chain(cells).collect()
    };
    let header = ["percentile", "size up to", "messages"].map(str::to_owned);
    Some(Table::new(
        "slowdown by size, p50 / p99",
        header.into_iter().chain(names),
        bins.iter().enumerate().map(line).collect(),
    ))
}

/// Returns the published figure for the size that ends a percentile.
fn closing(row: &Row, percentile: f64) -> String {
    let point = row.points().find(|point| f64::from(point.percent) == percentile);
    point.map_or_else(absent, |point| pair(Some(point.median), Some(point.p99)))
}

/// Summaries of slowdowns, one line per figure.
fn slowdowns(contenders: &[Contender], reference: &Reference) -> Table {
    let published = |name: &str| reference.row(name);
    let line = |name: &str, ours: fn(&Slowdown) -> f64, theirs: fn(&Row) -> f64| {
        let cells = columns(
            contenders,
            published,
            |each| each.slowdown(ours).map_or_else(absent, words),
            |row| short(theirs(row)),
        );
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let names = columns(
        contenders,
        published,
        |each| each.name.clone(),
        |row| format!("{} (published)", row.scheme),
    );
    let medium = columns(
        contenders,
        published,
        |each| each.medium().map_or_else(absent, words),
        |_| absent(),
    );
    Table {
        title: "slowdown".to_owned(),
        header: [String::new()].into_iter().chain(names).collect(),
        lines: vec![
            line(
                "greatest p99 of the smaller half",
                |of| of.small_half_p99_max,
                |row| row.summary.small_half_p99_max,
            ),
            line("mean by messages", |of| of.mean_by_messages, |row| row.summary.mean_by_messages),
            line("mean by bytes", |of| of.mean_by_bytes, |row| row.summary.mean_by_bytes),
            ["p99 of medium messages".to_owned()].into_iter().chain(medium).collect(),
            line("p99 of the longest", |of| of.largest_bin_p99, |row| row.longest().p99),
        ],
    }
}

/// Queues of switches, mean and longest; `None` if no contender has any.
fn queues(contenders: &[Contender], reference: &Reference) -> Option<Table> {
    let with: Vec<Contender> =
        contenders.iter().filter(|each| each.queues().is_some()).cloned().collect();
    if with.is_empty() {
        return None;
    }
    let published = |name: &str| reference.queues_of(name);
    let names =
        columns(&with, published, |each| each.name.clone(), |_| "Homa (published)".to_owned());
    let line = |(index, name): (usize, &str)| {
        let cells = columns(
            &with,
            published,
            |each| each.queues().map_or_else(absent, |queues| both(queues[index])),
            |queues| {
                let QueueLength { mean_kb, max_kb } = queues[index];
                format!("{} / {}", short(mean_kb), short(max_kb))
            },
        );
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let lines = ["TOR to spine", "spine to TOR", "TOR to host"].into_iter().enumerate().map(line);
    Some(Table::new(
        "queues in KB, mean / longest",
        [String::new()].into_iter().chain(names),
        lines.collect(),
    ))
}

/// Returns the traffic that the fabric carried.
fn load(contenders: &[Contender]) -> Table {
    let line = |name: &str, of: &dyn Fn(&Contender) -> String| {
        [name.to_owned()].into_iter().chain(contenders.iter().map(of)).collect::<Vec<String>>()
    };
    let count = |of: fn(&Figures) -> u64| {
        move |each: &Contender| each.runs.iter().map(of).sum::<u64>().to_string()
    };
    let mut lines = vec![
        line("achieved load", &|each| words(each.spread(|run| run.achieved_load))),
        line("wasted", &|each| words(each.spread(|run| run.wasted))),
        line("messages", &count(|run| run.messages)),
        line("failed messages", &count(|run| run.failed)),
        line("dropped packets", &count(|run| run.dropped)),
        line("goodput in Gbit/s per host", &|each| words(each.spread(|run| run.goodput))),
        line("data packets", &count(|run| run.packets)),
    ];
    lines.extend(recovery(contenders));
    if contenders.iter().any(|each| !each.speeds.is_empty()) {
        lines.push(line("data packets per second here", &|each| match &each.speeds[..] {
            [] => absent(),
            speeds => words(Spread::over(speeds)),
        }));
    }
    let names = contenders.iter().map(|each| each.name.clone());
    Table::new("load", [String::new()].into_iter().chain(names), lines)
}

/// Returns the retransmissions of the contenders; empty if no contender counts them.
fn recovery(contenders: &[Contender]) -> Vec<Vec<String>> {
    let counts = |each: &Contender| {
        each.runs.iter().filter_map(|run| run.recovery).collect::<Vec<Recovery>>()
    };
    if contenders.iter().all(|each| counts(each).is_empty()) {
        return Vec::new();
    }
    let line = |name: &str, of: &dyn Fn(&[Recovery]) -> String| {
        let cell = |each: &Contender| match &counts(each)[..] {
            [] => absent(),
            runs => of(runs),
        };
        [name.to_owned()].into_iter().chain(contenders.iter().map(cell)).collect::<Vec<String>>()
    };
    let sum = |runs: &[Recovery], of: fn(&Recovery) -> u64| runs.iter().map(of).sum::<u64>();
    vec![
        line("socket overflows", &|runs| sum(runs, |run| run.socket_overflows).to_string()),
        line("share of bytes sent again", &|runs| {
            let shares: Vec<f64> = runs.iter().map(|run| run.resent_share).collect();
            words(Spread::over(&shares))
        }),
        line("needless resends", &|runs| sum(runs, |run| run.needless_resends).to_string()),
    ]
}

/// Returns one line per setting and contender.
pub(super) fn overview(settings: &[Setting]) -> Table {
    let header = [
        "",
        "offered load",
        "achieved load",
        "small half p99 max",
        "mean by bytes",
        "p99 of medium messages",
        "p99 of the longest",
        "TOR to host KB, mean / longest",
    ];
    let line = |(setting, contender): (&Setting, &Contender)| {
        let slowdown = |of: fn(&Slowdown) -> f64| contender.slowdown(of).map_or_else(absent, words);
        vec![
            setting.name_of(contender),
            short(setting.load()),
            words(contender.spread(|run| run.achieved_load)),
            slowdown(|of| of.small_half_p99_max),
            slowdown(|of| of.mean_by_bytes),
            contender.medium().map_or_else(absent, words),
            slowdown(|of| of.largest_bin_p99),
            contender.queues().map_or_else(absent, |[.., host]| both(host)),
        ]
    };
    let lines = settings.iter().flat_map(|each| each.contenders.iter().map(move |c| (each, c)));
    Table::new("all settings", header, lines.map(line).collect())
}

fn absent() -> String {
    ABSENT.to_owned()
}

/// `1.43 / 2.00`.
fn pair(p50: Option<f64>, p99: Option<f64>) -> String {
    match (p50, p99) {
        (Some(p50), Some(p99)) => format!("{} / {}", short(p50), short(p99)),
        _ => absent(),
    }
}

/// Formats the mean and the maximum.
fn both((mean, max): (Spread, Spread)) -> String {
    format!("{} / {}", words(mean), words(max))
}

fn words(spread: Spread) -> String {
    spread_in_words(&spread)
}

/// `99`, `99.9`.
pub(super) fn percentile(percentile: f64) -> String {
    apus_report::chart::short_number(percentile)
}
