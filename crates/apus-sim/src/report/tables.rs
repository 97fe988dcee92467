//! How does a sweep look in a terminal?

use apus_lab::result::table::{grid, short};
use apus_lab::stats::Spread;

use super::setting::{Contender, Setting};

/// Everything about one setting: slowdown by size, what summarises it, queues.
pub(super) fn one(setting: &Setting) -> String {
    let contenders = &setting.contenders;
    let tables = [by_size(contenders), summary(contenders), queues(contenders)];
    tables.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Slowdown by size, one line per bin; `None` if nobody found a steady state.
fn by_size(contenders: &[Contender]) -> Option<String> {
    let steady: Vec<_> = contenders.iter().map(|each| (each, each.by_size())).collect();
    let (_, bins) = steady.iter().find(|(_, bins)| !bins.is_empty())?;
    let names = contenders.iter().map(|each| format!("{} p50 / p99", each.name));
    let header = ["percentile", "size up to", "messages"].map(str::to_owned);
    let line = |index: usize| {
        let bin = bins[index];
        let cell = |bins: &Vec<crate::sweep::Bin>| match bins.get(index) {
            Some(bin) => pair(bin.p50, bin.p99),
            None => "–".to_owned(),
        };
        let what = [percentile(bin.percentile), bin.upto.to_string(), bin.count.to_string()];
        what.into_iter().chain(steady.iter().map(|(_, bins)| cell(bins))).collect()
    };
    let header = header.into_iter().chain(names).collect();
    Some(format!("slowdown by size\n{}", grid(header, (0..bins.len()).map(line))))
}

/// One line per figure, one column per contender.
fn summary(contenders: &[Contender]) -> Option<String> {
    let absent = || "–".to_owned();
    let slowdown = |name: &str, of: fn(&crate::sweep::Slowdown) -> f64| {
        let cells = contenders.iter().map(|each| each.slowdown(of).map_or_else(absent, words));
        [name.to_owned()].into_iter().chain(cells).collect::<Vec<String>>()
    };
    let figure = |name: &str, of: &dyn Fn(&Contender) -> String| {
        [name.to_owned()].into_iter().chain(contenders.iter().map(of)).collect::<Vec<String>>()
    };
    let count = |of: fn(&crate::sweep::Figures) -> u64| {
        move |each: &Contender| each.runs.iter().map(of).sum::<u64>().to_string()
    };
    let speed = |each: &Contender| match &each.speeds[..] {
        [] => absent(),
        speeds => words(Spread::over(speeds)),
    };
    let lines = [
        slowdown("greatest p99 of the smaller half", |of| of.small_half_p99_max),
        slowdown("mean by messages", |of| of.mean_by_messages),
        slowdown("mean by bytes", |of| of.mean_by_bytes),
        slowdown("p99 of the longest", |of| of.largest_bin_p99),
        figure("achieved load", &|each| words(each.spread(|run| run.achieved_load))),
        figure("wasted", &|each| words(each.spread(|run| run.wasted))),
        figure("messages", &count(|run| run.messages)),
        figure("failed", &count(|run| run.failed)),
        figure("dropped packets", &count(|run| run.dropped)),
        figure("data packets", &count(|run| run.packets)),
        figure("packets per second here", &speed),
    ];
    let header = [String::new()].into_iter().chain(contenders.iter().map(|each| each.name.clone()));
    Some(grid(header.collect(), lines.into_iter()).to_string())
}

/// Queues of switches, mean and longest.
fn queues(contenders: &[Contender]) -> Option<String> {
    let all: Vec<_> = contenders.iter().map(|each| (each, each.queues())).collect();
    all.iter().find(|(_, queues)| queues.is_some())?;
    let header = ["queues in KB".to_owned()]
        .into_iter()
        .chain(contenders.iter().map(|each| format!("{} mean / max", each.name)));
    let line = |(index, name): (usize, &str)| {
        let cell = |queues: &Option<[(Spread, Spread); 3]>| match queues {
            Some(queues) => format!("{} / {}", words(queues[index].0), words(queues[index].1)),
            None => "–".to_owned(),
        };
        [name.to_owned()].into_iter().chain(all.iter().map(|(_, queues)| cell(queues))).collect()
    };
    let names = ["TOR to spine", "spine to TOR", "TOR to host"];
    Some(grid(header.collect(), names.into_iter().enumerate().map(line)).to_string())
}

/// One line per setting and contender.
pub(super) fn overview(settings: &[Setting]) -> String {
    let header = [
        "",
        "achieved load",
        "small half p99 max",
        "mean by bytes",
        "longest p99",
        "TOR to host KB mean / max",
    ];
    let absent = || "–".to_owned();
    let line = |(setting, contender): (&Setting, &Contender)| {
        let slowdown = |of: fn(&crate::sweep::Slowdown) -> f64| {
            contender.slowdown(of).map_or_else(absent, words)
        };
        let queues = contender
            .queues()
            .map_or_else(absent, |[.., host]| format!("{} / {}", words(host.0), words(host.1)));
        vec![
            setting.name_of(contender),
            words(contender.spread(|run| run.achieved_load)),
            slowdown(|of| of.small_half_p99_max),
            slowdown(|of| of.mean_by_bytes),
            slowdown(|of| of.largest_bin_p99),
            queues,
        ]
    };
    let lines = settings.iter().flat_map(|each| each.contenders.iter().map(move |c| (each, c)));
    grid(header.map(str::to_owned).to_vec(), lines.map(line)).to_string()
}

/// `1.43 / 2.00`.
fn pair(p50: Option<f64>, p99: Option<f64>) -> String {
    match (p50, p99) {
        (Some(p50), Some(p99)) => format!("{} / {}", short(p50), short(p99)),
        _ => "–".to_owned(),
    }
}

/// `5.91 (5.80 – 6.12)`, or without the range if all runs agree.
fn words(spread: Spread) -> String {
    let Spread { median, min, max } = spread;
    if min == max {
        short(median)
    } else {
        format!("{} ({} – {})", short(median), short(min), short(max))
    }
}

/// `99`, `99.9`.
fn percentile(percentile: f64) -> String {
    let text = format!("{percentile:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
