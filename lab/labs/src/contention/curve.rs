//! A curve: the measurements of one contender by the number of workers.

use std::fmt;

use super::contender::Contender;
use super::crew::CrewResult;
use super::options::Tasks;
use apus_report::runs::Measure;
use apus_report::series::{Series, SeriesPoint};
use apus_report::stats::Spread;

/// The measurements of one contender. The key of a point is the number of workers.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) contender: Contender,
    pub(super) tasks: Tasks,
    pub(super) series: Series<CrewResult>,
}

/// Thousands of operations per second.
pub(super) const KOPS: Measure<CrewResult> = |run| Some(run.rate / 1e3);

/// Mean lock wait in nanoseconds.
pub(super) const WAIT_MEAN: Measure<CrewResult> = |run| Some(run.wait?.mean);

/// 99th percentile of the lock wait in nanoseconds.
pub(super) const WAIT_P99: Measure<CrewResult> = |run| run.wait?.p99;

/// Share of the acquisitions that found the lock taken.
pub(super) const TAKEN: Measure<CrewResult> = |run| Some(run.wait?.taken);

/// Mean nanoseconds for which a lone worker holds the lock.
pub(super) const HOLD: Measure<CrewResult> = |run| run.hold;

/// Returns the median of the thousands of operations per second over the runs.
pub(super) fn median_kops(point: &SeriesPoint<CrewResult>) -> f64 {
    point.runs.median(KOPS).expect("every run has a rate")
}

impl Curve {
    /// Returns the point with one worker, which the others are compared with.
    pub(super) fn first(&self) -> &SeriesPoint<CrewResult> {
        self.series.first()
    }

    /// Returns the point with the most workers.
    pub(super) fn last(&self) -> &SeriesPoint<CrewResult> {
        self.series.last()
    }

    /// Returns the point with the most workers that have a core each.
    pub(super) fn last_within(&self, cores: usize) -> &SeriesPoint<CrewResult> {
        let within = |point: &&SeriesPoint<_>| point.key <= cores;
        self.series.points.iter().rfind(within).unwrap_or_else(|| self.first())
    }

    /// Returns the quotient of the rates with the most workers and with one, over the runs that
    /// have both.
    pub(super) fn scaling(&self) -> Option<Spread> {
        let one = self.first().runs.by_run(KOPS);
        let quotient = |(run, kops): (usize, f64)| {
            one.iter().find(|(other, _)| *other == run).map(|(_, one)| kops / one)
        };
        let quotients: Vec<f64> =
            self.last().runs.by_run(KOPS).into_iter().filter_map(quotient).collect();
        (!quotients.is_empty()).then(|| Spread::over(&quotients))
    }
}

/// The curve among all: `unix, threads`.
impl fmt::Display for Curve {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}", self.contender, self.tasks)
    }
}

/// Returns `1 process`, `2 threads`.
pub(super) fn count(workers: usize, tasks: Tasks) -> String {
    let one = if tasks == Tasks::Threads { "thread" } else { "process" };
    if workers == 1 { format!("1 {one}") } else { format!("{workers} {tasks}") }
}

#[cfg(test)]
pub(super) mod made_up {
    use super::*;
    use crate::contention::crew::Wait;

    /// Returns a curve of these rates, in thousands: workers, and the rate of each run. Mean waits
    /// are 100 ns times the number of workers, the 99th percentile is ten times the mean; half of
    /// the locks are found taken and are held for 50 ns.
    pub(in crate::contention) fn curve(
        contender: Contender,
        tasks: Tasks,
        kops: &[(usize, &[f64])],
    ) -> Curve {
        let visible = contender != Contender::Unix;
        let result = |workers: usize, kops: f64| CrewResult {
            rate: kops * 1e3,
            wait: visible.then(|| {
                let mean = 100.0 * workers as f64;
                Wait { mean, p99: Some(10.0 * mean), taken: 0.5 }
            }),
            hold: (contender == Contender::GlobalLock).then_some(50.0),
        };
        let points = kops.iter().map(|&(workers, runs)| SeriesPoint {
            key: workers,
            runs: (1..).zip(runs.iter().map(|&kops| result(workers, kops))).collect(),
        });
        Curve { contender, tasks, series: Series { points: points.collect() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_first_the_last_and_the_last_that_has_cores() {
        let runs: &[f64] = &[1.0, 2.0, 4.0];
        let curve = made_up::curve(
            Contender::GlobalLock,
            Tasks::Threads,
            &[(1, runs), (2, runs), (3, runs), (4, runs)],
        );
        assert_eq!((curve.first().key, curve.last().key), (1, 4));
        let within = |cores| curve.last_within(cores).key;
        assert_eq!((within(0), within(1), within(3), within(9)), (1, 1, 3, 4));
        assert_eq!(median_kops(curve.first()), 2.0);
        assert_eq!(curve.last().runs.median(WAIT_MEAN), Some(400.0));
        assert_eq!(curve.scaling(), Some(Spread { median: 1.0, min: 1.0, max: 1.0 }));
        assert_eq!(curve.to_string(), "global-lock, threads");
    }

    #[test]
    fn locks_that_cannot_be_observed_have_no_wait() {
        let curve = made_up::curve(Contender::Unix, Tasks::Processes, &[(1, &[1.0])]);
        for measure in [WAIT_MEAN, WAIT_P99, TAKEN, HOLD] {
            assert_eq!(curve.first().runs.spread(measure), None);
        }
    }
}
