//! Charts of input and output.

use super::curve::{Curve, FORWARDED, typical};
use super::mode::Mode;
use super::point::RatePoint;
use super::published::{self, PaperCurve, USER_SHARES, UserShare};
use apus_report::chart::{Axis, Heading, Line, Plot, Point, Scale, Stroke, decades, short_number};
use apus_report::result::short;
use apus_report::series::SeriesPoint;

/// Returns all plots of these curves with content, those without the filter first.
pub(super) fn plots(curves: &[Curve]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (filter, name, words) in [(false, "livelock", "without"), (true, "livelock-filter", "with")]
    {
        let curves: Vec<&Curve> = curves.iter().filter(|it| it.case.filter == filter).collect();
        let theirs = if filter { &[][..] } else { &USER_SHARES };
        let case = CasePlots { name, title: format!("{words} a filter") };
        plots.extend(case.output("", "Packets in and out", OUTPUT, &chosen(&curves, main)));
        plots.extend(case.shapes(&curves, filter));
        let title = "Packets in and out, by the quota of a turn";
        plots.extend(case.output("-quota", title, OUTPUT, &chosen(&curves, quota)));
        let title = "Packets in and out, by the share of the core that the router may use";
        let shares = chosen(&curves, share);
        plots.extend(case.output("-share", title, OUTPUT, &shares));
        plots.extend(case.left(&shares, theirs));
    }
    plots
}

/// The plots with the filter, or without it.
struct CasePlots<'a> {
    /// Start of their names.
    name: &'a str,
    /// End of their titles.
    title: String,
}

/// A curve and the name of its line.
type Named<'a> = (&'a Curve, String);

/// Returns the curves that `name` has a name for.
fn chosen<'a>(curves: &[&'a Curve], name: fn(Mode) -> Option<String>) -> Vec<Named<'a>> {
    curves.iter().filter_map(|curve| Some((*curve, name(curve.case.mode)?))).collect()
}

/// Names one mode of each kind.
fn main(mode: Mode) -> Option<String> {
    use Mode::{Apus, Interrupt, PollFeedback, PollNoQuota, PollQuota};
    matches!(mode, Interrupt | PollNoQuota | PollFeedback | Apus | PollQuota(Mode::QUOTA))
        .then(|| mode.to_string())
}

/// Names the modes that differ in their quota.
fn quota(mode: Mode) -> Option<String> {
    match mode {
        Mode::PollQuota(packets) => Some(format!("{packets} packets")),
        Mode::PollNoQuota => Some("no quota".to_owned()),
        _ => None,
    }
}

/// Names the modes that differ in their share.
fn share(mode: Mode) -> Option<String> {
    matches!(mode, Mode::Share(_)).then(|| mode.to_string())
}

const OUTPUT: &str = "Thousands of packets per second: offered, and counted at the far interface. Points are medians over \
                      the runs, whiskers span the runs.";

/// Multiples of the peak between which shapes are drawn; below, all lines coincide.
const SHAPES: std::ops::RangeInclusive<f64> = 0.25..=20.0;

impl CasePlots<'_> {
    /// Returns the plot of output against input.
    fn output(&self, kind: &str, title: &str, caption: &str, curves: &[Named<'_>]) -> Option<Plot> {
        let line = |(colour, (curve, name)): (usize, &Named<'_>)| Line {
            name: name.clone().into(),
            colour: colour % 8,
            stroke: Stroke::Plain,
            points: curve.series.line_points(offered, FORWARDED, " out"),
        };
        let lines: Vec<_> = curves.iter().enumerate().map(line).collect();
        let x = kpps(&lines, "packets in (thousands per second)");
        self.draw(kind, title, caption, (x, "packets out (thousands per second)"), lines)
    }

    /// Returns the shapes of curves and of the paper's, each measured by its own peak: machines
    /// whose speeds differ a thousand times cannot be compared otherwise.
    fn shapes(&self, curves: &[&Curve], filter: bool) -> Option<Plot> {
        let mut lines = Vec::new();
        let published = published::curves(filter);
        for (colour, theirs) in published.clone().enumerate() {
            let ours = curves.iter().find(|curve| curve.case.mode == theirs.mode);
            let Some(ours) = ours.and_then(|curve| shape(curve, colour)) else { continue };
            lines.extend([ours, theirs.shape(colour)]);
        }
        if lines.is_empty() {
            return None;
        }
        let apus = curves.iter().find(|curve| curve.case.mode == Mode::Apus);
        lines.extend(apus.and_then(|curve| shape(curve, published.count())));
        let values = lines.iter().flat_map(|line| &line.points).map(|point| point.x);
        let x = Axis::new(
            "packets in (multiples of the line's own peak)",
            Scale::Logarithmic,
            decades(values, short_number),
        );
        let caption = "Dashed: Mogul & Ramakrishnan 1996, in the colour of the mode that does the same here. Each line is \
                       scaled by its own peak in both directions, from a quarter of the peak to twenty times the peak; \
                       the question is whether it stays up.";
        let title = "Compared with 1996: packets in and out";
        self.draw("-1996", title, caption, (x, "packets out (% of the line's own peak)"), lines)
    }

    /// Returns the share of the core that programs have, against input; dashed: in 1996.
    fn left(&self, curves: &[Named<'_>], theirs: &[UserShare]) -> Option<Plot> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        for (colour, (curve, name)) in curves.iter().enumerate() {
            let percent = |point: &RatePoint| Some(100.0 * point.user_share);
            let points = curve.series.line_points(offered, percent, " % left");
            let (colour, ends) = (colour % 8, points.last().map_or(0.0, |last| last.x));
            lines.push(Line { name: name.clone().into(), colour, stroke: Stroke::Plain, points });
            let found = theirs.iter().find(|it| curve.case.mode == Mode::Share(it.percent));
            lines.extend(found.map(|&UserShare { percent, share }| Line {
                name: format!("1996: {percent} %").into(),
                colour,
                stroke: Stroke::Faint,
                points: [ends / 2.0, ends].map(|x| level(x, 100.0 * share)).to_vec(),
            }));
        }
        let caption = if theirs.is_empty() {
            "Share of the router's core in per cent that a program gets that only computes, while the router may use the \
             share in the name of the line."
        } else {
            "Share of the router's core in per cent that a program gets that only computes, while the router may use the \
             share in the name of the line. Dashed: the share at high rates in Mogul & Ramakrishnan 1996, as far as their \
             figure can be read; their rates differ."
        };
        let x = kpps(&lines, "packets in (thousands per second)");
        let title = "Share of the core that the router leaves to programs";
        self.draw("-left", title, caption, (x, "share of the core left (%)"), lines)
    }

    fn draw(
        &self,
        kind: &str,
        title: &str,
        caption: &str,
        (x, y): (Axis<'_>, &'static str),
        lines: Vec<Line<'_>>,
    ) -> Option<Plot> {
        let title = format!("{title}, {}", self.title);
        let name = format!("{}{kind}", self.name);
        let heading = Heading { name: &name, title: &title, caption };
        (!lines.is_empty()).then(|| Plot::lines(heading, x, (y, Scale::Linear), lines))
    }
}

/// Returns the thousands of packets per second that were offered in the run of the median, with
/// their words.
fn offered(point: &SeriesPoint<RatePoint>) -> (f64, String) {
    let kpps = typical(point).offered / 1e3;
    (kpps, format!("{} kpps in", short(kpps)))
}

/// Returns a curve scaled by its own peak; `None` if no packet was forwarded.
fn shape(curve: &Curve, colour: usize) -> Option<Line<'static>> {
    let peak = 1e3 * curve.peak().median;
    let at = |point: &SeriesPoint<RatePoint>| {
        let x = typical(point).offered / peak;
        (x, format!("{} times its peak in", short(x)))
    };
    (peak > 0.0).then(|| {
        let percent = |point: &RatePoint| Some(100.0 * point.forwarded / peak);
        let mut points = curve.series.line_points(at, percent, " % of its peak out");
        points.retain(|point| SHAPES.contains(&point.x));
        Line { name: curve.case.mode.to_string().into(), colour, stroke: Stroke::Plain, points }
    })
}

impl PaperCurve {
    /// Returns the curve scaled by its own peak.
    fn shape(&self, colour: usize) -> Line<'_> {
        let peak = self.curve.peak();
        let mut line = self.curve.line(colour, Stroke::Faint, |x, y| Point {
            x: x / peak,
            y: 100.0 * y / peak,
            range: None,
            at: format!("{} times its peak in", short(x / peak)).into(),
            says: format!("{} % of its peak out", short(100.0 * y / peak)).into(),
        });
        line.points.retain(|point| SHAPES.contains(&point.x));
        line
    }
}

/// Returns a point of a level line.
fn level(x: f64, percent: f64) -> Point<'static> {
    let (at, says) = ("high rates".into(), format!("{percent:.0} % left").into());
    Point { x, y: percent, range: None, at, says }
}

/// Returns a level axis that holds all points.
fn kpps<'a>(lines: &[Line<'_>], label: &'a str) -> Axis<'a> {
    let values = lines.iter().flat_map(|line| &line.points).map(|point| point.x);
    Axis::linear(label, values, short_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::livelock::curve::made_up::{Made, curve};

    /// Returns a curve of two rates, 1,000 and 4,000 packets per second, with the outputs of each
    /// run.
    fn made(mode: Mode, filter: bool, runs: &[[f64; 2]]) -> Curve {
        let points = |outputs: &[f64; 2]| vec![Made(1e3, outputs[0]), Made(4e3, outputs[1])];
        curve(mode, filter, &runs.iter().map(points).collect::<Vec<_>>())
    }

    fn names(plots: &[Plot]) -> Vec<&str> {
        plots.iter().map(|plot| &plot.name[..]).collect()
    }

    fn legend(plot: &Plot) -> Vec<&str> {
        plot.legend.iter().map(|(_, name)| &name[..]).collect()
    }

    fn named<'a>(plots: &'a [Plot], name: &str) -> &'a Plot {
        plots.iter().find(|plot| plot.name == name).unwrap_or_else(|| panic!("no plot {name}"))
    }

    /// Returns the texts of the points of a line.
    fn points<'a>(plot: &'a Plot, line: &str) -> Vec<&'a str> {
        let group =
            plot.svg.split("<g data-name=\"").find(|it| it.starts_with(&format!("{line}\"")));
        let group = group.unwrap_or_else(|| panic!("no line {line}"));
        let titles = group.split("<title>").skip(1);
        titles.map(|it| it.split("</title>").next().unwrap()).collect()
    }

    #[test]
    fn every_mode_is_drawn_with_the_filter_and_without() {
        let all = || Mode::all().into_iter();
        let both = [false, true].into_iter();
        let curves: Vec<Curve> = both
            .flat_map(|filter| all().map(move |mode| made(mode, filter, &[[1e3, 2e3]])))
            .collect();
        let plots = plots(&curves);
        let kinds = ["", "-1996", "-quota", "-share", "-left"];
        let expected: Vec<String> = ["livelock", "livelock-filter"]
            .iter()
            .flat_map(|name| kinds.iter().map(move |kind| format!("{name}{kind}")))
            .collect();
        assert_eq!(names(&plots), expected);
        for filter in ["livelock", "livelock-filter"] {
            let legend = |kind: &str| legend(named(&plots, &format!("{filter}{kind}")));
            let main = ["interrupt", "poll-no-quota", "poll-quota", "poll-feedback", "apus"];
            assert_eq!(legend(""), main);
            let quotas = ["no quota", "5 packets", "10 packets", "20 packets", "100 packets"];
            assert_eq!(legend("-quota"), quotas);
            assert_eq!(legend("-share"), ["share=25", "share=50", "share=75", "share=100"]);
        }
        for plot in &plots {
            let ends = if plot.name.starts_with("livelock-filter") { "with" } else { "without" };
            assert!(plot.title.ends_with(&format!(", {ends} a filter")), "{}", plot.title);
        }
    }

    #[test]
    fn a_point_is_the_median_and_has_the_range_of_its_runs() {
        let runs = [[1e3, 300.0], [1e3, 100.0], [900.0, 200.0]];
        let plots = plots(&[made(Mode::Interrupt, false, &runs)]);
        let plot = named(&plots, "livelock");
        assert_eq!(
            points(plot, "interrupt"),
            ["interrupt, 1.00 kpps in: 1.00 out", "interrupt, 4.00 kpps in: 0.200 out"]
        );
        assert!(plot.svg.contains(r#"data-low="0.1" data-high="0.3""#), "{}", plot.svg);
        assert!(plot.svg.contains("packets in (thousands per second)"), "{}", plot.svg);
        assert!(plot.svg.contains("packets out (thousands per second)"), "{}", plot.svg);
        let one = self::plots(&[made(Mode::Interrupt, false, &runs[..1])]);
        assert!(!named(&one, "livelock").svg.contains("whisker"), "one run has no range");
    }

    #[test]
    fn shapes_are_scaled_by_their_own_peak_next_to_the_one_of_1996() {
        let flat = made(Mode::PollFeedback, true, &[[1e3, 1e3]]);
        let livelocked = made(Mode::Interrupt, true, &[[500.0, 10.0]]);
        let plots = plots(&[livelocked, flat]);
        let plot = named(&plots, "livelock-filter-1996");
        assert_eq!(
            plot.legend.iter().map(|(class, name)| (&class[..], &name[..])).collect::<Vec<_>>(),
            [
                ("c0", "interrupt"),
                ("c0 faint", "1996: unmodified"),
                ("c1", "poll-feedback"),
                ("c1 faint", "1996: polling, feedback")
            ],
            "a pair has a colour"
        );
        assert_eq!(
            points(plot, "interrupt"),
            [
                "interrupt, 2.00 times its peak in: 100 % of its peak out",
                "interrupt, 8.00 times its peak in: 2.00 % of its peak out"
            ]
        );
        let theirs = points(plot, "1996: unmodified");
        assert_eq!(theirs[1], "1996: unmodified, 1.00 times its peak in: 100 % of its peak out");
        assert!(
            theirs.iter().any(|it| it.ends_with("3.00 times its peak in: 0.000 % of its peak out"))
        );
    }

    #[test]
    fn the_paper_is_not_drawn_without_a_counterpart() {
        let nothing = made(Mode::Interrupt, false, &[[0.0, 0.0]]);
        for curves in [vec![made(Mode::Apus, false, &[[1e3, 1e3]])], vec![nothing]] {
            assert_eq!(names(&plots(&curves)), ["livelock"]);
        }
        assert_eq!(names(&plots(&[])), [""; 0]);
    }

    #[test]
    fn beyond_twenty_times_the_peak_a_shape_is_not_drawn() {
        let plots = plots(&[made(Mode::Interrupt, false, &[[190.0, 190.0]])]);
        assert_eq!(
            points(named(&plots, "livelock-1996"), "interrupt").len(),
            1,
            "4,000 is 21 times"
        );
    }

    #[test]
    fn the_share_left_to_programs_is_drawn_with_the_share_of_1996() {
        let curves = [false, true].map(|filter| made(Mode::Share(50), filter, &[[1e3, 1e3]]));
        let plots = plots(&curves);
        let plot = named(&plots, "livelock-left");
        assert_eq!(legend(plot), ["share=50", "1996: 50 %"]);
        assert_eq!(points(plot, "share=50")[0], "share=50, 1.00 kpps in: 50.0 % left");
        assert_eq!(points(plot, "1996: 50 %")[0], "1996: 50 %, high rates: 45 % left");
        assert!(plot.svg.contains("share of the core left (%)"));
        // The paper has no such figure with screend.
        assert_eq!(legend(named(&plots, "livelock-filter-left")), ["share=50"]);
        assert!(!named(&plots, "livelock-filter-left").caption.contains("1996"));
    }
}
