//! Published rates of one lock for all sockets, and of none.

use std::sync::LazyLock;

use serde::Deserialize;

use apus_report::published::{grouped, records};

/// A curve that others measured.
pub(super) struct Published {
    pub(super) name: String,
    /// Workers, ascending, with operations per second of all together.
    pub(super) points: Vec<(usize, f64)>,
}

#[derive(Deserialize)]
struct Point {
    name: String,
    workers: usize,
    rate: f64,
}

/// All published curves.
pub(super) static PUBLISHED: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let points: Vec<Point> = records(include_str!("published.csv"));
    let curve = |(name, points): (String, Vec<Point>)| Published {
        name,
        points: points.iter().map(|point| (point.workers, point.rate)).collect(),
    };
    grouped(points, |point| point.name.clone()).into_iter().map(curve).collect()
});

/// Returns FreeBSD with the one lock, and after it was taken away.
pub(super) fn freebsd() -> [&'static Published; 2] {
    [&PUBLISHED[0], &PUBLISHED[1]]
}

impl Published {
    /// Returns the operations per second of one worker.
    pub(super) fn one(&self) -> f64 {
        self.points[0].1
    }

    /// Returns the operations per second of `workers` workers, if they are published.
    pub(super) fn at(&self, workers: usize) -> Option<f64> {
        self.points.iter().find(|(count, _)| *count == workers).map(|(_, rate)| *rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_begin_with_one_worker_and_ascend() {
        for published in &*PUBLISHED {
            assert_eq!(published.points[0].0, 1, "{}", published.name);
            assert!(published.points.is_sorted_by(|a, b| a.0 < b.0), "{}", published.name);
        }
    }

    /// As docs/reference/papers.md, *Local sockets and benchmarks*, has it: 58.6 times one process afterwards, a gain
    /// of 4010 % (in the mean), 18.3 % with two.
    #[test]
    fn the_gains_are_those_that_were_published() {
        let [before, after] = freebsd();
        let gain = |workers| after.at(workers).unwrap() / before.at(workers).unwrap() - 1.0;
        assert!((gain(96) - 40.1).abs() < 1.0, "{}", gain(96));
        assert!((gain(4) - 0.204).abs() < 0.01 && gain(1).abs() < 0.012);
        assert!((after.at(96).unwrap() / after.one() - 58.6).abs() < 0.1);
        assert!(before.at(96) < before.at(2), "fewer than with two");
    }
}
