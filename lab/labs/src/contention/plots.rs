//! Charts of rates and waits, measured and modelled.

use super::contender::Contender;
use super::crew::CrewResult;
use super::curve::{Curve, WAIT_MEAN, WAIT_P99, count, median_kops};
use super::forecast::{Ahead, Forecast};
use super::options::Tasks;
use super::published::freebsd;
use apus_report::chart::{Axis, Heading, Line, Plot, Point, Scale, Stroke, short_number};
use apus_report::result::short;
use apus_report::series::SeriesPoint;

/// Returns all plots: of processes, then of threads.
pub(super) fn plots(curves: &[Curve], forecasts: &[Forecast]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for tasks in [Tasks::Processes, Tasks::Threads] {
        let curves: Vec<&Curve> = curves.iter().filter(|it| it.tasks == tasks).collect();
        let forecast = forecasts.iter().find(|it| it.tasks == tasks);
        let Some(forecast) = forecast.filter(|_| !curves.is_empty()) else { continue };
        let kind = TaskPlots { tasks, curves, forecast };
        plots.extend([kind.rates(), kind.waits(), kind.beside_freebsd()]);
    }
    plots
}

/// The plots of processes, or of threads.
struct TaskPlots<'a> {
    tasks: Tasks,
    curves: Vec<&'a Curve>,
    forecast: &'a Forecast,
}

/// Returns the colour of a contender; apus has the first, as everywhere.
const fn colour(contender: Contender) -> usize {
    match contender {
        Contender::FineGrained => 0,
        Contender::GlobalLock => 1,
        Contender::Unix => 2,
    }
}

/// Returns a point without a range.
fn exact(tasks: Tasks, workers: usize, y: f64, unit: &str) -> Point<'static> {
    let (at, says) = (count(workers, tasks).into(), format!("{}{unit}", short(y)).into());
    Point { x: workers as f64, y, range: None, at, says }
}

impl TaskPlots<'_> {
    /// Returns a measured line: medians over the runs, with their range.
    fn measured(
        &self,
        curve: &Curve,
        unit: &str,
        measure: impl Fn(&CrewResult) -> Option<f64>,
    ) -> Line<'static> {
        let tasks = self.tasks;
        let at = |point: &SeriesPoint<CrewResult>| (point.key as f64, count(point.key, tasks));
        Line {
            name: curve.contender.to_string().into(),
            colour: colour(curve.contender),
            stroke: Stroke::Plain,
            points: curve.series.line_points(at, measure, unit),
        }
    }

    /// Returns a line of the model, dashed.
    fn modelled(
        &self,
        contender: Contender,
        unit: &str,
        value: impl Fn(&Ahead) -> f64,
    ) -> Line<'static> {
        let point = |ahead: &Ahead| exact(self.tasks, ahead.workers, value(ahead), unit);
        Line {
            name: format!("model: {contender}").into(),
            colour: colour(contender),
            stroke: Stroke::Faint,
            points: self.forecast.points.iter().map(point).collect(),
        }
    }

    /// Returns the plot of operations per second.
    fn rates(&self) -> Plot {
        let millions = |run: &CrewResult| Some(run.rate / 1e6);
        let mut lines: Vec<_> =
            self.curves.iter().map(|curve| self.measured(curve, " million", millions)).collect();
        lines.push(self.modelled(Contender::GlobalLock, " million", |ahead| ahead.global / 1e3));
        lines.push(self.modelled(Contender::FineGrained, " million", |ahead| ahead.fine / 1e3));
        let caption = "Millions of operations per second of all workers together, each with its own pair: one byte written \
                       and read by the same worker. Points are medians over the runs, whiskers span the runs. Dashed: a \
                       model, not measured. It treats the lock as a queue with the hold and handover times measured here, \
                       and gives each worker without the lock the rate measured here; each worker has a core.";
        let title = format!("Operations per second by the number of {}", self.tasks);
        self.draw("", &title, caption, "millions of operations per second", lines)
    }

    /// Returns the plot of lock waits.
    fn waits(&self) -> Plot {
        let visible = || self.curves.iter().filter(|it| it.contender != Contender::Unix);
        let mut lines: Vec<_> =
            visible().map(|curve| self.measured(curve, " ns", WAIT_MEAN)).collect();
        for curve in visible() {
            let line = self.measured(curve, " ns (p99)", WAIT_P99);
            let name = format!("{} p99", curve.contender).into();
            lines.push(Line { name, colour: 3 + line.colour, ..line });
        }
        lines.push(self.modelled(Contender::GlobalLock, " ns", |ahead| ahead.wait));
        let caption = "Lock waits in nanoseconds over all acquisitions: the mean and the 99th percentile. Without a line, no \
                       worker waited. Dashed: a model, not measured.";
        let title = format!("Lock waits by the number of {}", self.tasks);
        self.draw("-wait", &title, caption, "nanoseconds", lines)
    }

    /// Returns the plot of scaling: here, in the model, and as published.
    fn beside_freebsd(&self) -> Plot {
        let mut lines = Vec::new();
        for curve in &self.curves {
            let one = median_kops(curve.first()) * 1e3;
            lines.push(self.measured(curve, " times one", |run| Some(run.rate / one)));
        }
        let first = self.forecast.points[0];
        for (contender, value) in [
            (Contender::GlobalLock, (|it| it.global) as fn(&Ahead) -> f64),
            (Contender::FineGrained, |it| it.fine),
        ] {
            let one = value(&first);
            lines.push(self.modelled(contender, " times one", |ahead| value(ahead) / one));
        }
        for (at, published) in freebsd().into_iter().enumerate() {
            let (_, one) = published.first();
            let point = |workers: f64, rate| {
                exact(Tasks::Processes, workers as usize, rate / one, " times one")
            };
            lines.push(published.line(3 + at, Stroke::Dotted, point));
        }
        let caption = "Each line in multiples of its rate with one worker. Dotted: will-it-scale's unix1 on FreeBSD, with one \
                       lock for all sockets and with a lock per socket (D15430); one lock peaked with 6 processes. Dashed: a \
                       model, not measured.";
        let title = format!("Compared with FreeBSD: the effect of more {}", self.tasks);
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
        // A logarithmic axis has no place for 0.
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

/// Returns ticks from one to at least `most`.
fn powers_of_two(most: f64) -> Vec<(f64, String)> {
    let tick = |power: i32| {
        let value = 2f64.powi(power);
        (value, short_number(value))
    };
    (0..=(most.log2().ceil() as i32).max(1)).map(tick).collect()
}

#[cfg(test)]
mod tests {
    use crate::contention::declaration::made_up::{curves, findings};
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
            assert!(plot.caption.contains("Dashed: a model, not measured"), "{}", plot.name);
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
