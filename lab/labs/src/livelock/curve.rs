//! Curves: the points of a mode at all rates, run by run.

use std::fmt;

use super::point::{Case, Point};

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

impl Point {
    /// Returns whether the rate counts as free of losses.
    pub(super) fn is_loss_free(&self) -> bool {
        self.forwarded >= FREE * self.offered
    }
}

impl Curve {
    /// Returns the point of the run with the median output for each rate.
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
    use crate::livelock::Mode;
    use crate::livelock::router::Counters;

    /// Offered and forwarded packets per second.
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
    use crate::livelock::Mode;

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
