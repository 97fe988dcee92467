//! The order of measurement: every rate, in every mode.

use std::path::Path;

use super::findings::found;
use super::options::SHARES;
use super::point::{Bench, Case, Point};
use super::priority::Priority;
use super::{Findings, Mode, Options, Rates, mode};
use apus_report::progress::Progress;
use apus_testbed::error::{Error, require};
use apus_testbed::fabric::RouterPath;
use apus_testbed::machine::{BackgroundLoad, Cores, PmQosRequest};

/// The curve of a mode, with the filter or without.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) case: Case,
    /// One for each rate, run by run.
    pub(super) runs: Vec<Vec<Point>>,
    /// The highest rate that is carried without loss, in packets per second: the MLFRR.
    pub(super) loss_free: f64,
}

/// Share of what is offered that has to come out for a rate to count as free of losses. Chosen by us: one pause of the
/// machine, of a fraction of a millisecond, is none of the router's doing.
const FREE: f64 = 0.99;

/// Halvings in the search for the highest rate without loss.
const HALVINGS: usize = 5;

/// Measures everything that is asked for. `program` is an agent when its first argument is
/// [`apus_testbed::process::AGENT`].
///
/// # Errors
///
/// The options make no sense; this user may not create namespaces or have real-time priority; there is one
/// core only; or a process failed.
pub fn run(options: &Options, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let cores = two_cores()?;
    if options.modes.iter().any(|mode| *mode != Mode::Apus) {
        Priority::RealTime(mode::HARDWARE).check()?;
    }
    let crossing = RouterPath::up()?;
    let neighbours = BackgroundLoad::watch();
    let awake = PmQosRequest::open();
    let bench = Bench {
        crossing: &crossing,
        program,
        cores,
        monitor: options.monitor,
        seconds: options.seconds,
        train: options.train,
        seed: options.seed,
    };
    let rates = rates(options, &bench)?;
    let mut curves = curves(options, &bench, &rates)?;
    let progress = Progress::of(curves.len());
    for curve in &mut curves {
        progress.step(&format!("{}: where losses begin", curve.case));
        curve.loss_free = bench.loss_free(curve.case, &curve.medians())?;
    }
    drop(progress);
    drop(awake);
    Ok(found(options, &curves, neighbours.note()))
}

/// Returns one for the generator, one for the router.
fn two_cores() -> Result<[usize; 2], Error> {
    let cores = Cores::choose();
    let both = cores.client.zip(cores.server).map(|(client, server)| [client, server]);
    both.ok_or_else(|| {
        Error::Peer(
            "this takes two cores, one for the load and one for the router, and this process may use one \
             only (see taskset(1))"
                .to_owned(),
        )
    })
}

/// Returns the packets per second; `None` is as many as possible.
fn rates(options: &Options, bench: &Bench<'_>) -> Result<Vec<Option<f64>>, Error> {
    match &options.rates {
        Rates::List(rates) => Ok(rates.iter().copied().map(Some).collect()),
        Rates::Auto => {
            let case = Case { mode: Mode::Apus, filter: false };
            let most = bench.measure(case, None)?.offered;
            require(most > 0.0, "seconds", "nothing was sent in so short a time; try 0.25")?;
            Ok(SHARES.iter().map(|share| Some(share * most)).chain([None]).collect())
        }
    }
}

/// Returns all curves. Modes take turns, so that what changes about the machine changes for all of them.
fn curves(
    options: &Options,
    bench: &Bench<'_>,
    rates: &[Option<f64>],
) -> Result<Vec<Curve>, Error> {
    let cases = options
        .filter
        .cases()
        .iter()
        .flat_map(|&filter| options.modes.iter().map(move |&mode| Case { mode, filter }));
    let curve = |case| Curve { case, runs: Vec::new(), loss_free: 0.0 };
    let mut curves: Vec<Curve> = cases.map(curve).collect();
    let progress = Progress::of(options.runs * curves.len() * rates.len());
    for number in 1..=options.runs {
        for curve in &mut curves {
            let case = curve.case;
            let mut points = Vec::new();
            for rate in rates {
                progress.step(&format!("run {number}, {case}"));
                points.push(bench.measure(case, *rate)?);
            }
            curve.runs.push(points);
        }
    }
    Ok(curves)
}

impl Bench<'_> {
    /// Returns the highest rate without loss, between two points of the curve of which one has no losses.
    fn loss_free(&self, case: Case, curve: &[Point]) -> Result<f64, Error> {
        let free = curve.iter().take_while(|point| point.is_loss_free()).count();
        let mut low = free.checked_sub(1).map_or(0.0, |last| curve[last].offered);
        let Some(mut high) = curve.get(free).map(|point| point.offered) else { return Ok(low) };
        for _ in 0..HALVINGS {
            let point = self.measure(case, Some(f64::midpoint(low, high)))?;
            if point.is_loss_free() {
                low = point.offered;
            } else {
                high = point.offered;
            }
        }
        Ok(low)
    }
}

impl Point {
    fn is_loss_free(&self) -> bool {
        self.forwarded >= FREE * self.offered
    }
}

impl Curve {
    /// For each rate, the point of the run with the median output.
    pub(super) fn medians(&self) -> Vec<Point> {
        let rates = self.runs.first().map_or(0, Vec::len);
        let median = |rate: usize| {
            let mut points: Vec<Point> = self.runs.iter().map(|run| run[rate]).collect();
            points.sort_by(|a, b| a.forwarded.total_cmp(&b.forwarded));
            points[points.len() / 2]
        };
        (0..rates).map(median).collect()
    }

    /// Returns the highest output of each run.
    pub(super) fn peaks(&self) -> Vec<f64> {
        let peak = |run: &Vec<Point>| run.iter().map(|point| point.forwarded).fold(0.0, f64::max);
        self.runs.iter().map(peak).collect()
    }

    /// Returns the least output at the rate of the peak and those above it, as a share of the peak: of the medians, so
    /// that one bad moment of one run does not count. `None` if nothing came out.
    pub(super) fn least_after_peak(&self) -> Option<f64> {
        let outputs: Vec<f64> = self.medians().iter().map(|point| point.forwarded).collect();
        let (peak, most) =
            outputs.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = outputs[peak..].iter().copied().fold(most, f64::min);
        (most > 0.0).then(|| least / most)
    }

    /// Returns the share of the core that was left to programs at the highest rate of each run.
    pub(super) fn left_at_most(&self) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.last()).map(|point| point.user_share).collect()
    }

    /// Returns the output at the highest rate of each run.
    pub(super) fn at_most(&self) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.last()).map(|point| point.forwarded).collect()
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mode, filter } = self;
        if *filter { write!(formatter, "{mode}+filter") } else { write!(formatter, "{mode}") }
    }
}

/// Made-up curves, for the tests of sentences and charts.
#[cfg(test)]
pub(super) mod made_up {
    use super::*;
    use crate::livelock::router::Counters;

    /// What was offered, and what came out, in packets per second.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::livelock) struct Made(pub(in crate::livelock) f64, pub(in crate::livelock) f64);

    /// Run by run. A tenth of the packets was dropped before the router took them, eight tenths afterwards; half of the
    /// core is left.
    pub(in crate::livelock) fn curve(mode: Mode, filter: bool, runs: &[Vec<Made>]) -> Curve {
        let point = |&Made(offered, forwarded): &Made| Point {
            offered,
            forwarded,
            user_share: 0.5,
            packets: 1_000,
            seen: None,
            counters: Counters { received: 900, ip_queue_full: 800, ..Counters::default() },
        };
        let runs = runs.iter().map(|points| points.iter().map(point).collect()).collect();
        Curve { case: Case { mode, filter }, runs, loss_free: 1e5 }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::{Made, curve};
    use super::*;

    #[test]
    fn a_curve_has_the_median_of_each_rate_and_the_peak_of_each_run() {
        let run = |first, last| vec![Made(1e3, first), Made(2e3, last)];
        let runs = [run(900.0, 10.0), run(1_000.0, 30.0), run(950.0, 20.0)];
        let curve = curve(Mode::Interrupt, true, &runs);
        let medians: Vec<f64> = curve.medians().iter().map(|point| point.forwarded).collect();
        assert_eq!(medians, [950.0, 20.0]);
        assert_eq!(curve.peaks(), [900.0, 1_000.0, 950.0]);
        assert_eq!(curve.at_most(), [10.0, 30.0, 20.0]);
        assert_eq!(curve.least_after_peak(), Some(20.0 / 950.0));
        assert_eq!(curve.case.to_string(), "interrupt+filter");
    }

    #[test]
    fn what_comes_before_the_peak_is_no_decline() {
        let outputs = |outputs: &[f64]| {
            let points = outputs.iter().map(|output| Made(1e3, *output)).collect();
            curve(Mode::Apus, false, &[points]).least_after_peak()
        };
        assert_eq!(outputs(&[1.0, 10.0, 8.0, 9.0]), Some(0.8));
        assert_eq!(outputs(&[1.0, 5.0, 10.0]), Some(1.0));
        assert_eq!(outputs(&[0.0, 0.0]), None);
    }

    #[test]
    fn one_packet_of_a_hundred_may_be_lost() {
        let curve = curve(Mode::Apus, false, &[vec![Made(1e3, 990.0), Made(1e3, 989.0)]]);
        let free: Vec<bool> = curve.medians().iter().map(Point::is_loss_free).collect();
        assert_eq!(free, [true, false]);
    }
}
