//! Curves: the points of a mode at all rates, run by run.

use std::fmt;

use super::point::{Case, RatePoint};
use apus_report::runs::{Measure, Runs};
use apus_report::series::{Series, SeriesPoint};
use apus_report::stats::Spread;

/// The curve of a mode, with the filter or without. The key of a point is the index of its rate;
/// every run has every rate.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) case: Case,
    pub(super) series: Series<RatePoint>,
    /// The highest rate without loss, in packets per second: the MLFRR.
    pub(super) loss_free: f64,
}

/// Output in thousands of packets per second.
pub(super) const FORWARDED: Measure<RatePoint> = |point| Some(point.forwarded / 1e3);

/// Share of the router's core that was left to programs.
pub(super) const USER_SHARE: Measure<RatePoint> = |point| Some(point.user_share);

/// Share of the offered packets that must come out for a rate to count as free of losses. Chosen by
/// us: a pause of the machine for a fraction of a millisecond is not the router's fault.
const LOSS_FREE: f64 = 0.99;

impl RatePoint {
    /// Returns whether the rate counts as free of losses.
    pub(super) fn is_loss_free(&self) -> bool {
        self.forwarded >= LOSS_FREE * self.offered
    }
}

/// Returns the run with the median output.
pub(super) fn typical(point: &SeriesPoint<RatePoint>) -> &RatePoint {
    point.runs.typical(FORWARDED)
}

impl Curve {
    /// Returns the curve of these runs, each with one point per rate.
    pub(super) fn of(case: Case, runs: &Runs<Vec<RatePoint>>) -> Self {
        let rates = runs.results().next().map_or(0, Vec::len);
        let point = |key| SeriesPoint {
            key,
            runs: runs.numbered().map(|(run, points)| (run, points[key])).collect(),
        };
        Self { case, series: Series { points: (0..rates).map(point).collect() }, loss_free: 0.0 }
    }

    /// Returns the run with the median output for each rate.
    pub(super) fn medians(&self) -> Vec<RatePoint> {
        self.series.points.iter().map(|point| *typical(point)).collect()
    }

    /// Returns the spread of the highest output over the runs, in thousands of packets per second.
    pub(super) fn peak(&self) -> Spread {
        let peaks: Vec<f64> = self.series.peaks(FORWARDED).into_iter().map(|(_, it)| it).collect();
        Spread::over(&peaks)
    }

    /// Returns the spread of a figure at the highest rate.
    pub(super) fn at_most(&self, measure: Measure<RatePoint>) -> Spread {
        self.series.last().runs.spread(measure).expect("every run has every rate")
    }

    /// Returns the least output at the rate of the peak and above it, as a share of the peak. It is
    /// taken of the medians, so that a single bad moment of one run does not count. `None` if
    /// nothing was forwarded.
    pub(super) fn least_after_peak(&self) -> Option<f64> {
        let outputs: Vec<f64> = self.medians().iter().map(|point| point.forwarded).collect();
        let (peak, most) =
            outputs.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = outputs[peak..].iter().copied().fold(most, f64::min);
        (most > 0.0).then(|| least / most)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, filter } = self;
        if *filter { write!(formatter, "{mode}+filter") } else { write!(formatter, "{mode}") }
    }
}

/// Made-up curves, for the tests of sentences and charts.
#[cfg(test)]
pub(super) mod made_up {
    use super::*;
    use crate::livelock::mode::Mode;
    use crate::livelock::router::Counters;

    /// Offered and forwarded packets per second.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::livelock) struct Made(pub(in crate::livelock) f64, pub(in crate::livelock) f64);

    /// Returns a curve of these runs. A tenth of the packets was dropped before the router took
    /// them, eight tenths afterwards; half of the core is left.
    pub(in crate::livelock) fn curve(mode: Mode, filter: bool, runs: &[Vec<Made>]) -> Curve {
        let point = |&Made(offered, forwarded): &Made| RatePoint {
            offered,
            forwarded,
            user_share: 0.5,
            packets: 1_000,
            seen: None,
            counters: Counters { received: 900, ip_queue_full: 800, ..Counters::default() },
        };
        let runs = (1..).zip(runs.iter().map(|points| points.iter().map(point).collect()));
        Curve { loss_free: 1e5, ..Curve::of(Case { mode, filter }, &runs.collect()) }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::{Made, curve};
    use super::*;
    use crate::livelock::mode::Mode;

    #[test]
    fn a_curve_has_the_median_of_each_rate_and_the_peak_of_each_run() {
        let run = |first, last| vec![Made(1e3, first), Made(2e3, last)];
        let runs = [run(900.0, 10.0), run(1_000.0, 30.0), run(950.0, 20.0)];
        let curve = curve(Mode::Interrupt, true, &runs);
        let medians: Vec<f64> = curve.medians().iter().map(|point| point.forwarded).collect();
        assert_eq!(medians, [950.0, 20.0]);
        assert_eq!(curve.series.peaks(FORWARDED), [(1, 0.9), (2, 1.0), (3, 0.95)]);
        assert_eq!(curve.peak().median, 0.95);
        assert_eq!(curve.at_most(FORWARDED), Spread { median: 0.02, min: 0.01, max: 0.03 });
        assert_eq!(curve.least_after_peak(), Some(20.0 / 950.0));
        assert_eq!(curve.case.to_string(), "interrupt+filter");
    }

    #[test]
    fn outputs_before_the_peak_are_no_decline() {
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
        let free: Vec<bool> = curve.medians().iter().map(RatePoint::is_loss_free).collect();
        assert_eq!(free, [true, false]);
    }
}
