//! Charts of rates and waits, measured and expected.

use super::curve::{Curve, Points};
use super::forecast::{Ahead, Forecast};
use super::published::{Published, freebsd};
use super::{Contender, Tasks};
use apus_report::chart::{Axis, Heading, Line, Plot, Point, Scale, Stroke, short_number};
use apus_report::result::short;
use apus_report::stats::Spread;

/// Returns all plots: of processes, then of threads.
pub(super) fn plots(curves: &[Curve], forecasts: &[Forecast]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for tasks in [Tasks::Processes, Tasks::Threads] {
        let curves: Vec<&Curve> = curves.iter().filter(|it| it.tasks == tasks).collect();
        let forecast = forecasts.iter().find(|it| it.tasks == tasks);
        let Some(forecast) = forecast.filter(|_| !curves.is_empty()) else { continue };
        let kind = Kind { tasks, curves, forecast };
        plots.extend([kind.rates(), kind.waits(), kind.beside_freebsd()]);
    }
    plots
}

/// The curves of one kind of workers, which are drawn together.
struct Kind<'a> {
    tasks: Tasks,
    curves: Vec<&'a Curve>,
    forecast: &'a Forecast,
}

/// Returns the product has the first colour, as everywhere.
const fn colour(contender: Contender) -> usize {
    match contender {
        Contender::FineGrained => 0,
        Contender::GlobalLock => 1,
        Contender::Unix => 2,
    }
}

/// The words for a figure of a number of workers.
struct Saying {
    unit: &'static str,
    tasks: Tasks,
}

impl Saying {
    fn point(&self, workers: usize, y: f64, range: Option<(f64, f64)>) -> Point<'static> {
        let at = super::curve::count(workers, self.tasks).into();
        let says = format!("{}{}", short(y), self.unit).into();
        Point { x: workers as f64, y, range, at, says }
    }
}

impl Kind<'_> {
    const fn says(&self, unit: &'static str) -> Saying {
        Saying { unit, tasks: self.tasks }
    }

    /// Returns the medians over the runs, with their range.
    fn measured(
        &self,
        curve: &Curve,
        unit: &'static str,
        value: impl Fn(&Points) -> Option<Spread>,
    ) -> Line<'static> {
        let says = self.says(unit);
        let point = |points: &Points| {
            let Spread { median, min, max } = value(points)?;
            let range = (points.runs.len() > 1).then_some((min, max));
            Some(says.point(points.workers, median, range))
        };
        Line {
            name: curve.contender.to_string().into(),
            colour: colour(curve.contender),
            stroke: Stroke::Plain,
            points: curve.points.iter().filter_map(point).collect(),
        }
    }

    /// Returns what the model says, dashed.
    fn expected(
        &self,
        contender: Contender,
        unit: &'static str,
        value: impl Fn(&Ahead) -> f64,
    ) -> Line<'static> {
        let says = self.says(unit);
        let point = |ahead: &Ahead| says.point(ahead.workers, value(ahead), None);
        Line {
            name: format!("model: {contender}").into(),
            colour: colour(contender),
            stroke: Stroke::Faint,
            points: self.forecast.points.iter().map(point).collect(),
        }
    }

    /// Operations a second.
    fn rates(&self) -> Plot {
        let millions = |points: &Points| {
            let rates: Vec<f64> = points.kops().iter().map(|kops| kops / 1e3).collect();
            Some(Spread::over(&rates))
        };
        let mut lines: Vec<_> =
            self.curves.iter().map(|curve| self.measured(curve, " million", millions)).collect();
        lines.push(self.expected(Contender::GlobalLock, " million", |ahead| ahead.global / 1e3));
        lines.push(self.expected(Contender::FineGrained, " million", |ahead| ahead.fine / 1e3));
        let caption = "Million operations a second of all workers together, each with a pair of its own: one byte \
                       written and read by the same worker. Points are medians over the runs, whiskers reach from the \
                       least to the greatest. Dashed is a model and not measured: one lock as a queue, with what holding \
                       and handing it over cost here, and as much as here for each worker without it; each worker has a core.";
        let title = format!("Operations a second against the number of {}", self.tasks);
        self.draw("", &title, caption, "million operations a second", lines)
    }

    /// Returns how long locks are waited for.
    fn waits(&self) -> Plot {
        let seen = || self.curves.iter().filter(|it| it.contender != Contender::Unix);
        let mut lines: Vec<_> =
            seen().map(|curve| self.measured(curve, " ns", Points::wait_mean)).collect();
        for curve in seen() {
            let line = self.measured(curve, " ns (p99)", Points::wait_p99);
            let name = format!("{} p99", curve.contender).into();
            lines.push(Line { name, colour: 3 + line.colour, ..line });
        }
        lines.push(self.expected(Contender::GlobalLock, " ns", |ahead| ahead.wait));
        let caption = "Nanoseconds that a lock is waited for, of all turns at it: the mean, and the 99th percentile. \
                       Where there is no line, no worker waited. Dashed is a model and not measured.";
        let title = format!("Waiting for the lock against the number of {}", self.tasks);
        self.draw("-wait", &title, caption, "nanoseconds", lines)
    }

    /// Returns what more workers bring, here, in the model, and as it was published.
    fn beside_freebsd(&self) -> Plot {
        let mut lines = Vec::new();
        for curve in &self.curves {
            let one = Spread::over(&curve.first().kops()).median;
            lines.push(self.measured(curve, " times one", |points| {
                let times: Vec<f64> = points.kops().iter().map(|kops| kops / one).collect();
                Some(Spread::over(&times))
            }));
        }
        let first = self.forecast.points[0];
        for (contender, value) in [
            (Contender::GlobalLock, (|it| it.global) as fn(&Ahead) -> f64),
            (Contender::FineGrained, |it| it.fine),
        ] {
            let one = value(&first);
            lines.push(self.expected(contender, " times one", |ahead| value(ahead) / one));
        }
        lines.extend(freebsd().into_iter().enumerate().map(|(at, it)| it.line(3 + at)));
        let caption = "Each line by what one worker alone has on it. Dotted: will-it-scale's unix1 on FreeBSD, with one \
                       lock for all sockets and after it was taken away (D15430); one lock had its peak with 6 processes. \
                       Dashed is a model and not measured.";
        let title = format!("Beside FreeBSD: what more {} bring", self.tasks);
        self.draw("-freebsd", &title, caption, "multiples of one worker", lines)
    }

    fn draw(
        &self,
        kind: &str,
        title: &str,
        caption: &str,
        y: &'static str,
        mut lines: Vec<Line<'_>>,
    ) -> Plot {
        // On a logarithmic axis there is no nothing.
        lines.iter_mut().for_each(|line| line.points.retain(|point| point.y > 0.0));
        lines.retain(|line| !line.points.is_empty());
        let points = lines.iter().flat_map(|line| &line.points);
        let most = points.map(|point| point.x).fold(1.0, f64::max);
        let x = Axis::new("workers", Scale::Logarithmic, powers_of_two(most));
        let tasks = if self.tasks == Tasks::Threads { "-threads" } else { "" };
        let name = format!("contention{kind}{tasks}");
        Plot::lines(Heading { name: &name, title, caption }, x, (y, Scale::Logarithmic), lines)
    }
}

impl Published {
    /// By what one worker had.
    fn line(&self, colour: usize) -> Line<'_> {
        let says = Saying { unit: " times one", tasks: Tasks::Processes };
        let point = |&(workers, rate): &(usize, f64)| says.point(workers, rate / self.one(), None);
        Line {
            name: (&self.name[..]).into(),
            colour,
            stroke: Stroke::Dotted,
            points: self.points.iter().map(point).collect(),
        }
    }
}

/// From one to at least `most`.
fn powers_of_two(most: f64) -> Vec<(f64, String)> {
    let tick = |power: i32| {
        let value = 2f64.powi(power);
        (value, short_number(value))
    };
    (0..=(most.log2().ceil() as i32).max(1)).map(tick).collect()
}

#[cfg(test)]
mod tests {
    use crate::contention::findings::made_up::{curves, findings};
    use crate::contention::plots::{plots, powers_of_two};
    use apus_report::chart::Plot;

    fn named(name: &str) -> Plot {
        let findings = findings();
        findings
            .plots()
            .find(|plot| plot.name == name)
            .cloned()
            .unwrap_or_else(|| panic!("no plot {name}"))
    }

    fn legend(plot: &Plot) -> Vec<(&str, &str)> {
        plot.legend.iter().map(|(class, name)| (&class[..], &name[..])).collect()
    }

    #[test]
    fn processes_and_threads_have_three_plots_each() {
        let names: Vec<String> = findings().plots().map(|plot| plot.name.clone()).collect();
        let processes = ["contention", "contention-wait", "contention-freebsd"];
        let threads = processes.map(|name| format!("{name}-threads"));
        assert_eq!(names, [processes.map(str::to_owned), threads].concat());
        assert!(plots(&curves(), &[]).is_empty(), "nothing is drawn of nothing");
    }

    #[test]
    fn a_model_is_dashed_and_called_so() {
        assert_eq!(
            legend(&named("contention")),
            [
                ("c1", "global-lock"),
                ("c0", "fine-grained"),
                ("c2", "unix"),
                ("c1 faint", "model: global-lock"),
                ("c0 faint", "model: fine-grained")
            ]
        );
        for plot in findings().plots() {
            assert!(plot.caption.contains("Dashed is a model and not measured"), "{}", plot.name);
        }
    }

    #[test]
    fn the_published_curves_are_dotted_and_end_with_96() {
        let plot = named("contention-freebsd");
        let published: Vec<_> =
            legend(&plot).into_iter().filter(|(_, name)| name.starts_with("FreeBSD")).collect();
        let expected =
            [("c3 dotted", "FreeBSD, one list lock"), ("c4 dotted", "FreeBSD, a lock per socket")];
        assert_eq!(published, expected);
        assert!(plot.svg.contains("FreeBSD, a lock per socket, 96 processes: 58.6 times one"));
    }

    #[test]
    fn waits_are_drawn_of_the_locks_that_can_be_seen() {
        let plot = named("contention-wait-threads");
        let names: Vec<&str> = legend(&plot).into_iter().map(|(_, name)| name).collect();
        let expected = [
            "global-lock",
            "fine-grained",
            "global-lock p99",
            "fine-grained p99",
            "model: global-lock",
        ];
        assert_eq!(names, expected);
        assert!(plot.svg.contains("global-lock, 2 threads: 200 ns"), "{}", plot.svg);
    }

    #[test]
    fn the_level_axis_holds_all_workers() {
        let ticks = |most| powers_of_two(most).into_iter().map(|tick| tick.1).collect::<Vec<_>>();
        assert_eq!(ticks(1.0), ["1", "2"]);
        assert_eq!(ticks(96.0), ["1", "2", "4", "8", "16", "32", "64", "128"]);
        assert_eq!(ticks(128.0).last().unwrap(), "128");
    }
}
