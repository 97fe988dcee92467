//! A curve: what was measured of one contender, by the number of workers.

use std::fmt;

use super::crew::Point;
use super::{Contender, Tasks};
use apus_report::stats::Spread;

/// All points of one contender.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) contender: Contender,
    pub(super) tasks: Tasks,
    /// By the number of workers, ascending; at least one.
    pub(super) points: Vec<Points>,
}

/// All runs with as many workers.
#[derive(Clone, Debug)]
pub(super) struct Points {
    pub(super) workers: usize,
    /// Those that have a result: at least one.
    pub(super) runs: Vec<Point>,
}

impl Points {
    /// Thousand operations a second, in each run.
    pub(super) fn kops(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.rate / 1e3).collect()
    }

    /// Returns thousand operations a second in each run, with the number of the run.
    pub(super) fn kops_by_run(&self) -> Vec<(usize, f64)> {
        self.runs.iter().map(|run| (run.run, run.rate / 1e3)).collect()
    }

    /// Returns the mean nanoseconds that locks were waited for in each run, if they can be seen.
    pub(super) fn wait_mean(&self) -> Option<Spread> {
        self.spread(|run| run.wait.map(|wait| wait.mean))
    }

    /// Returns the 99th percentile of them.
    pub(super) fn wait_p99(&self) -> Option<Spread> {
        self.spread(|run| run.wait?.p99)
    }

    /// Returns the share of the times at which they were found taken.
    pub(super) fn taken(&self) -> Option<Spread> {
        self.spread(|run| Some(run.wait?.taken))
    }

    /// Returns the mean nanoseconds that the lock is held by a worker that is by itself.
    pub(super) fn hold(&self) -> Option<Spread> {
        self.spread(|run| run.hold)
    }

    fn spread(&self, value: impl Fn(&Point) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.runs.iter().map(value).collect();
        values.map(|values| Spread::over(&values))
    }
}

impl Curve {
    /// With the fewest workers: one.
    pub(super) fn first(&self) -> &Points {
        self.points.first().expect("at least one point")
    }

    /// With the most workers.
    pub(super) fn last(&self) -> &Points {
        self.points.last().expect("at least one point")
    }

    /// With the most workers of which each has a core.
    pub(super) fn last_within(&self, cores: usize) -> &Points {
        let within = |points: &&Points| points.workers <= cores;
        self.points.iter().rfind(within).unwrap_or_else(|| self.first())
    }
}

/// The curve among all: `unix, threads`.
impl fmt::Display for Curve {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}", self.contender, self.tasks)
    }
}

/// `1 process`, `2 threads`.
pub(super) fn count(workers: usize, tasks: Tasks) -> String {
    let one = if tasks == Tasks::Threads { "thread" } else { "process" };
    if workers == 1 { format!("1 {one}") } else { format!("{workers} {tasks}") }
}

#[cfg(test)]
pub(super) mod made_up {
    use super::*;
    use crate::contention::crew::Wait;

    /// Returns a curve of these rates, in thousands: workers, and what they got in each run. Waits are 100 times the
    /// number of workers, their 99th percentile ten times as much; half of the locks are found taken, and are held for
    /// 50 ns.
    pub(in crate::contention) fn curve(
        contender: Contender,
        tasks: Tasks,
        kops: &[(usize, &[f64])],
    ) -> Curve {
        let visible = contender != Contender::Unix;
        let point = |workers: usize, run: usize, kops: f64| Point {
            run,
            rate: kops * 1e3,
            wait: visible.then(|| {
                let mean = 100.0 * workers as f64;
                Wait { mean, p99: Some(10.0 * mean), taken: 0.5 }
            }),
            hold: (contender == Contender::GlobalLock).then_some(50.0),
        };
        let points = kops.iter().map(|&(workers, runs)| Points {
            workers,
            runs: (1..).zip(runs).map(|(run, &kops)| point(workers, run, kops)).collect(),
        });
        Curve { contender, tasks, points: points.collect() }
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
        assert_eq!((curve.first().workers, curve.last().workers), (1, 4));
        let within = |cores| curve.last_within(cores).workers;
        assert_eq!((within(0), within(1), within(3), within(9)), (1, 1, 3, 4));
        assert_eq!(curve.first().kops(), runs);
        assert_eq!(curve.last().wait_mean().unwrap().median, 400.0);
        assert_eq!(curve.to_string(), "global-lock, threads");
    }

    #[test]
    fn locks_that_cannot_be_seen_have_no_wait() {
        let curve = made_up::curve(Contender::Unix, Tasks::Processes, &[(1, &[1.0])]);
        assert_eq!(curve.first().wait_mean(), None);
        assert_eq!((curve.first().wait_p99(), curve.first().taken()), (None, None));
        assert_eq!(curve.first().hold(), None);
    }
}
