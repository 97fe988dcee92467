//! How are curves of input and output drawn?

use super::Mode;
use super::published::{PEAK, Published, WITH, WITHOUT};
use super::sweep::Curve;
use crate::chart::{Axis, Chart, Line, Look, Plot, Point, short_number};
use crate::result::short;
use crate::stats::Spread;

/// All plots of these curves that have anything to show.
pub(super) fn plots(curves: &[Curve]) -> Vec<Plot> {
    let main = |mode: Mode| {
        use Mode::{Apus, Interrupt, PollFeedback, PollNoQuota, PollQuota};
        matches!(mode, Interrupt | PollNoQuota | PollFeedback | Apus | PollQuota(Mode::QUOTA))
    };
    let quota = |mode: Mode| matches!(mode, Mode::PollQuota(_) | Mode::PollNoQuota);
    let scale = scale(curves);
    let mut plots = Vec::new();
    for (filter, name, words, published) in [
        (false, "livelock", "without a filter", &WITHOUT[..]),
        (true, "livelock-filter", "with a filter in a process of its own", &WITH[..]),
    ] {
        let title = format!("Packets in and out, {words}");
        let published = if scale.is_some() { published } else { &[] };
        plots.extend(output(
            curves,
            name,
            &title,
            |curve| curve.case.filter == filter && main(curve.case.mode),
            published,
            scale.unwrap_or(1.0),
        ));
        let title = format!("Packets in and out, by the quota of a turn, {words}");
        plots.extend(output(
            curves,
            &format!("{name}-quota"),
            &title,
            |curve| curve.case.filter == filter && quota(curve.case.mode),
            &[],
            1.0,
        ));
    }
    plots.extend(users(curves));
    plots
}

/// What the paper's rates are multiplied by, so that its unmodified kernel has the peak of ours.
fn scale(curves: &[Curve]) -> Option<f64> {
    let base = curves.iter().find(|it| it.case.mode == Mode::Interrupt && !it.case.filter)?;
    let peak = Spread::over(&base.peaks()).median;
    (peak > 0.0).then_some(peak / PEAK)
}

/// Output against input.
fn output(
    curves: &[Curve],
    name: &str,
    title: &str,
    wanted: impl Fn(&Curve) -> bool,
    published: &[Published],
    scale: f64,
) -> Option<Plot> {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| wanted(curve)).collect();
    let ours = curves.iter().enumerate().map(|(colour, curve)| Line {
        name: curve.case.mode.to_string().into(),
        colour: colour % 8,
        look: Look::Plain,
        points: of_curve(curve, |point| point.forwarded / 1e3, "out"),
    });
    let mut lines: Vec<Line<'_>> = ours.collect();
    if lines.is_empty() {
        return None;
    }
    let most = greatest(&lines);
    lines.extend(published.iter().enumerate().map(|(colour, published)| {
        let scaled = |&(x, y): &(f64, f64)| (x * scale / 1e3, y * scale / 1e3);
        let points = published.points.iter().map(scaled).filter(|point| point.0 <= most * 1.05);
        let point = |(x, y): (f64, f64)| Point {
            x,
            y,
            range: None,
            at: format!("{} kpps in, scaled", short(x)).into(),
            says: format!("{} out", short(y)).into(),
        };
        let points = points.map(point).collect();
        Line { name: published.name.into(), colour: 5 + colour, look: Look::Faint, points }
    }));
    let caption = if published.is_empty() {
        "Thousands of packets per second: offered, and counted at the far interface. Whiskers are the \
         least and the greatest value of the runs."
    } else {
        "Thousands of packets per second: offered, and counted at the far interface. Whiskers are the \
         least and the greatest value of the runs. Dashed: Mogul & Ramakrishnan 1996, both axes scaled so that their \
         unmodified kernel has the peak of `interrupt`."
    };
    Some(draw(name, title, caption, "packets out (thousands per second)", lines))
}

/// Share of the core that programs have, against input.
fn users(curves: &[Curve]) -> Option<Plot> {
    let shares = curves
        .iter()
        .filter(|curve| matches!(curve.case.mode, Mode::Share(_)) && !curve.case.filter);
    let lines: Vec<Line<'_>> = shares
        .enumerate()
        .map(|(colour, curve)| Line {
            name: curve.case.mode.to_string().into(),
            colour: colour % 8,
            look: Look::Plain,
            points: of_curve(curve, |point| 100.0 * point.user_share, "% left"),
        })
        .collect();
    let caption = "What a program that only computes gets of the router's core, in per cent, while the router \
                   may use the share that each line is called after.";
    let title = "What the router leaves to programs";
    let draw = |lines| draw("livelock-share", title, caption, "share of the core left (%)", lines);
    (!lines.is_empty()).then(|| draw(lines))
}

fn draw(name: &str, title: &str, caption: &str, y: &'static str, lines: Vec<Line<'_>>) -> Plot {
    let all = || lines.iter().flat_map(|line| &line.points);
    let chart = Chart {
        description: title,
        x: Axis::linear(
            "packets in (thousands per second)",
            all().map(|point| point.x),
            short_number,
        ),
        y: Axis::linear(y, all().map(|point| point.range.map_or(point.y, |it| it.1)), short_number),
        lines: lines.clone(),
    };
    Plot::of_lines(name, title, caption, &chart)
}

fn greatest(lines: &[Line<'_>]) -> f64 {
    lines.iter().flat_map(|line| &line.points).map(|point| point.x).fold(0.0, f64::max)
}

/// The medians of a curve, with their range over the runs.
fn of_curve<'a>(
    curve: &Curve,
    value: impl Fn(&super::point::Point) -> f64,
    what: &str,
) -> Vec<Point<'a>> {
    let point = |(rate, median): (usize, super::point::Point)| {
        let values: Vec<f64> = curve.runs.iter().map(|run| value(&run[rate])).collect();
        let Spread { median: y, min, max } = Spread::over(&values);
        let x = median.offered / 1e3;
        Point {
            x,
            y,
            range: (values.len() > 1).then_some((min, max)),
            at: format!("{} kpps in", short(x)).into(),
            says: format!("{} {what}", short(y)).into(),
        }
    };
    curve.medians().into_iter().enumerate().map(point).collect()
}
