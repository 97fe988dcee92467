//! Charts of slowdowns: by message size, and the latency of short messages.

use super::curve::Curve;
use super::summary::{OURS, Percentile};
use apus_report::chart::{
    Axis, Chart, Line, Plot, Point, Scale, Stroke, Ticks, bytes, decades, micros, short_number,
};
use apus_report::page::Card;
use apus_report::result::short;

/// Returns the number of a contender's colour among `names`. The first colour is reserved for apus,
/// whether or not apus is among them.
#[must_use]
pub fn colour<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> usize {
    if name == OURS {
        return 0;
    }
    1 + names.take_while(|each| *each != name).filter(|each| *each != OURS).count() % 7
}

/// Returns the card of each contender: its tail and its median of short messages.
#[must_use]
pub fn cards(curves: &[Curve]) -> Vec<Card> {
    let names = || curves.iter().map(|curve| &curve.name[..]);
    let card = |curve: &Curve| Card {
        name: curve.name.clone(),
        colour: colour(names(), &curve.name),
        figure: short(curve.short.p99),
        more: format!("median {}; 1 is the best possible", short(curve.short.p50)),
    };
    curves.iter().map(card).collect()
}

/// Returns the median and 99th percentile of slowdown by message size.
#[must_use]
pub fn by_size(curves: &[Curve]) -> Plot {
    let caption = "Solid: 99th percentile. Dashed: median. Each point closes a group of sizes; 1 is the best possible.";
    let chart =
        chart(curves, &[(Percentile::P50, Stroke::Faint), (Percentile::P99, Stroke::Plain)]);
    Plot::of_lines("slowdown-p99", "Slowdown by message size", caption, &chart)
}

/// Returns the 99.9th percentile of slowdown by message size.
#[must_use]
pub fn far_tail(curves: &[Curve]) -> Plot {
    let caption = "99.9th percentile: what one message in a thousand takes or more.";
    let chart = chart(curves, &[(Percentile::P999, Stroke::Plain)]);
    Plot::of_lines("slowdown-p999", "The far tail by message size", caption, &chart)
}

/// Returns slowdown against size: a line for each percentile of each contender. On the level axis
/// equal shares of the messages are equally far apart, as in the papers.
fn chart<'a>(curves: &'a [Curve], percentiles: &[(Percentile, Stroke)]) -> Chart<'a> {
    let shares = shares(curves);
    let names = || curves.iter().map(|curve| &curve.name[..]);
    let line = |curve: &'a Curve, &(percentile, stroke): &(Percentile, Stroke)| {
        let groups = curve.by_size.iter().zip(&shares).filter(|(group, _)| group.count > 0);
        let points = groups.map(|(group, share)| Point {
            x: *share,
            y: (percentile.of)(&group.tail),
            range: None,
            at: format!("up to {}", bytes(f64::from(group.upto))).into(),
            says: format!("{} {}", percentile.name, short((percentile.of)(&group.tail))).into(),
        });
        let (name, colour) = (curve.name[..].into(), colour(names(), &curve.name));
        Line { name, colour, stroke, points: points.collect() }
    };
    let lines: Vec<Line<'_>> = curves
        .iter()
        .flat_map(|curve| percentiles.iter().map(move |percentile| line(curve, percentile)))
        .collect();
    let slowdowns = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
    Chart {
        description: "Slowdown against message size of each contender",
        x: Axis::new(
            "message size (axis: share of messages)",
            Scale::Linear,
            size_ticks(curves, &shares),
        ),
        // The axis starts at 1, the best possible value.
        y: Axis::logarithmic(
            "slowdown",
            slowdowns.chain([1.0]).collect::<Vec<_>>().into_iter(),
            short_number,
        ),
        lines,
    }
}

/// Returns the cumulative share of messages at the end of each group. All contenders carry the same
/// messages; the counts are taken from the contender that completed the most.
fn shares(curves: &[Curve]) -> Vec<f64> {
    let total = |curve: &&Curve| curve.by_size.iter().map(|group| group.count).sum::<u64>();
    let Some(most) = curves.iter().max_by_key(total) else { return Vec::new() };
    let all = total(&most).max(1) as f64;
    let counts = most.by_size.iter().scan(0, |sum, group| {
        *sum += group.count;
        Some(*sum as f64 / all)
    });
    counts.collect()
}

/// Returns a line at the cumulative share of each group, labelled with its largest size where space
/// permits.
fn size_ticks(curves: &[Curve], shares: &[f64]) -> Ticks {
    const ROOM: f64 = 0.07;
    let groups = curves.first().map_or(&[][..], |curve| &curve.by_size);
    let mut ticks = vec![(0.0, String::new())];
    let mut labelled = 0.0;
    let last = shares.last().copied().unwrap_or(1.0);
    for (group, &share) in groups.iter().zip(shares) {
        let room = share - labelled >= ROOM && (share == last || last - share >= ROOM);
        let label = if room {
            labelled = share;
            bytes(f64::from(group.upto)).replace(' ', "\u{a0}")
        } else {
            String::new()
        };
        if share > ticks[ticks.len() - 1].0 {
            ticks.push((share, label));
        }
    }
    if ticks.len() == 1 {
        ticks.push((1.0, String::new()));
    }
    ticks
}

/// Returns the distribution of the latencies of short messages. Nines are equally far apart, so
/// that the tail is as visible as the median.
#[must_use]
pub fn cdf(curves: &[Curve]) -> Plot {
    let latencies = curves.iter().flat_map(|curve| &curve.cdf).map(|&(latency, _)| latency);
    let names = || curves.iter().map(|curve| &curve.name[..]);
    let line = |curve: &Curve| {
        let points = curve.cdf.iter().map(|&(latency, share)| Point {
            x: latency,
            y: share,
            range: None,
            at: format!("{} % of short messages", percent(share)).into(),
            says: format!("within {}", micros(latency)).into(),
        });
        let (name, colour) = (curve.name.clone().into(), colour(names(), &curve.name));
        Line { name, colour, stroke: Stroke::Plain, points: points.collect() }
    };
    let ticks = |shares: &[(f64, &str)]| {
        shares.iter().map(|&(share, label)| (share, label.to_owned())).collect::<Ticks>()
    };
    let nines = [
        (0.0, "0 %"),
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9995, ""),
    ];
    let quarters = [(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")];
    let chart = Chart {
        description: "Share of the short messages that took no longer than a time",
        x: Axis::new(
            "round trip time of short messages",
            Scale::Logarithmic,
            decades(latencies, micros),
        ),
        y: Axis::new("share of messages", Scale::Nines, ticks(&nines))
            .or(Scale::Linear, ticks(&quarters)),
        lines: curves.iter().map(line).collect(),
    };
    let caption = "Share of the smaller half of the messages that took no longer than a time, from the \
                   instant they were due to the complete reply.";
    Plot::of_lines("short-cdf", "Latency of short messages", caption, &chart)
}

/// Returns a share in per cent, to the last nine.
fn percent(share: f64) -> String {
    let text = format!("{:.3}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
