//! What was published about one lock for all sockets?

/// A curve that others measured.
pub(super) struct Published {
    pub(super) name: &'static str,
    /// Workers, ascending, with operations a second of all together.
    pub(super) points: &'static [(usize, f64)],
}

/// FreeBSD with the one lock, and after it was taken away (D15430, medians of 10 or 11 runs of will-it-scale's
/// `unix1_processes`; published numbers G). Before, the peak was at 6 processes.
pub(super) const FREEBSD: [Published; 2] = [
    Published {
        name: "FreeBSD, one list lock",
        points: &[(1, 1_197_139.0), (2, 2_038_187.0), (4, 3_990_138.0), (96, 1_693_578.0)],
    },
    Published {
        name: "FreeBSD, a lock per socket",
        points: &[(1, 1_204_919.0), (2, 2_401_044.0), (4, 4_806_117.0), (96, 70_662_504.0)],
    },
];

/// The same loop in C on Linux, on a virtual machine with two cores, which its host limits (published numbers G).
pub(super) const UNIX1: Published =
    Published { name: "will-it-scale unix1, Linux", points: &[(1, 0.35e6), (2, 0.33e6)] };

impl Published {
    /// What one worker got.
    pub(super) fn one(&self) -> f64 {
        self.points[0].1
    }

    /// What so many workers got.
    pub(super) fn at(&self, workers: usize) -> Option<f64> {
        self.points.iter().find(|(count, _)| *count == workers).map(|(_, rate)| *rate)
    }

    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        FREEBSD.iter().chain([&UNIX1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_begin_with_one_worker_and_ascend() {
        for published in Published::all() {
            assert_eq!(published.points[0].0, 1, "{}", published.name);
            assert!(published.points.is_sorted_by(|a, b| a.0 < b.0), "{}", published.name);
        }
    }

    /// As the reference has it: 58.6 times one process afterwards, a gain of 4010 % (in the mean), 18.3 % with two.
    #[test]
    fn the_gains_are_those_that_were_published() {
        let [before, after] = &FREEBSD;
        let gain = |workers| after.at(workers).unwrap() / before.at(workers).unwrap() - 1.0;
        assert!((gain(96) - 40.1).abs() < 1.0, "{}", gain(96));
        assert!((gain(4) - 0.204).abs() < 0.01 && gain(1).abs() < 0.012);
        assert!((after.at(96).unwrap() / after.one() - 58.6).abs() < 0.1);
        assert!(before.at(96) < before.at(2), "fewer than with two");
    }
}
