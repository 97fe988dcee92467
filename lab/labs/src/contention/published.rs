//! Published rates of one lock for all sockets, and of a lock per socket.

use std::sync::LazyLock;

use apus_report::published::{PublishedCurve, grouped, records};

/// All published curves: operations per second of all workers together, by the number of workers.
pub(super) static PUBLISHED: LazyLock<Vec<PublishedCurve>> = LazyLock::new(|| {
    let points: Vec<(String, f64, f64)> = records(include_str!("published.csv"));
    let curve = |(name, points): (String, Vec<(String, f64, f64)>)| PublishedCurve {
        name,
        points: points.iter().map(|(_, workers, rate)| (*workers, *rate)).collect(),
    };
    grouped(points, |point| point.0.clone()).into_iter().map(curve).collect()
});

/// Returns FreeBSD with the one lock, and with a lock per socket.
pub(super) fn freebsd() -> [&'static PublishedCurve; 2] {
    [&PUBLISHED[0], &PUBLISHED[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_start_with_one_worker_and_ascend() {
        for published in &*PUBLISHED {
            assert_eq!(published.first().0, 1.0, "{}", published.name);
            assert!(published.points.is_sorted_by(|a, b| a.0 < b.0), "{}", published.name);
        }
    }

    /// docs/reference/papers.md, *Local sockets and benchmarks*: 58.6 times one process with a lock
    /// per socket, a gain of 4010 % (mean), 18.3 % with two processes.
    #[test]
    fn the_gains_are_those_that_were_published() {
        let [before, after] = freebsd();
        let gain = |workers| after.at(workers).unwrap() / before.at(workers).unwrap() - 1.0;
        assert!((gain(96.0) - 40.1).abs() < 1.0, "{}", gain(96.0));
        assert!((gain(4.0) - 0.204).abs() < 0.01 && gain(1.0).abs() < 0.012);
        assert!((after.at(96.0).unwrap() / after.first().1 - 58.6).abs() < 0.1);
        assert!(before.at(96.0) < before.at(2.0), "fewer than with two");
    }
}
