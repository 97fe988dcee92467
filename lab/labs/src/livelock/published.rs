//! Published curves of receive livelock: Mogul and Ramakrishnan, USENIX 1996.

use std::sync::LazyLock;

use serde::Deserialize;

use super::mode::Mode;
use apus_report::published::{PublishedCurve, grouped, records};

/// A curve of the paper.
pub(super) struct PaperCurve {
    /// Whether packets pass the filter, `screend`.
    filter: bool,
    /// The mode that does the same here.
    pub(super) mode: Mode,
    /// Packets per second: output by input.
    pub(super) curve: PublishedCurve,
}

/// Filter, name, mode, input, output.
type CurvePoint = (bool, String, String, f64, f64);

static CURVES: LazyLock<Vec<PaperCurve>> = LazyLock::new(|| {
    let points: Vec<CurvePoint> = records(include_str!("published.csv"));
    let curve = |((filter, name), points): ((bool, String), Vec<CurvePoint>)| PaperCurve {
        filter,
        mode: points[0].2.parse().expect("a mode of this experiment"),
        curve: PublishedCurve {
            name,
            points: points.iter().map(|(.., input, output)| (*input, *output)).collect(),
        },
    };
    grouped(points, |point| (point.0, point.1.clone())).into_iter().map(curve).collect()
});

/// Returns the curves with the filter or without it.
pub(super) fn curves(filter: bool) -> impl Iterator<Item = &'static PaperCurve> + Clone {
    CURVES.iter().filter(move |published| published.filter == filter)
}

/// The share of the core that user programs had at high rates.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct UserShare {
    /// Threshold of the router in per cent.
    pub(super) percent: u32,
    pub(super) share: f64,
}

pub(super) static USER_SHARES: LazyLock<Vec<UserShare>> =
    LazyLock::new(|| records(include_str!("user_shares.csv")));

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the output of the model in docs/reference/papers.md, *Livelock cost model*, for the
    /// peak and the rate of livelock.
    fn model(input: f64, peak: f64, livelock: f64) -> f64 {
        let urgent = 1.0 / livelock;
        let rest = 1.0 / peak - urgent;
        input.min(((1.0 - input * urgent) / rest).max(0.0))
    }

    #[test]
    fn the_unmodified_kernel_follows_the_model() {
        let [without, with] = [false, true].map(|filter| curves(filter).collect::<Vec<_>>());
        for (published, peak, livelock) in
            [(&without[0], 4_700.0, 14_880.0), (&with[0], 2_000.0, 6_000.0)]
        {
            assert_eq!(published.curve.peak(), peak);
            for &(input, output) in &published.curve.points {
                let expected = model(input, peak, livelock);
                assert!((output - expected).abs() <= 0.02 * peak, "{input}: {output}, {expected}");
            }
            assert_eq!(published.curve.last().1, 0.0, "livelock");
        }
    }

    #[test]
    fn modes_that_the_paper_cured_stay_flat_and_others_collapse() {
        for PaperCurve { curve, mode, .. } in &*CURVES {
            assert!(curve.points.is_sorted_by(|a, b| a.0 < b.0), "{}", curve.name);
            let most = curve.points.iter().all(|(input, output)| output <= input);
            assert!(most, "{}: more output than input", curve.name);
            let last = curve.last().1 / curve.peak();
            let flat = matches!(mode, Mode::PollQuota(_) | Mode::PollFeedback);
            assert_eq!(last, if flat { 1.0 } else { 0.0 }, "{}", curve.name);
        }
    }

    #[test]
    fn each_has_a_counterpart_among_the_measured_modes() {
        for published in &*CURVES {
            assert!(Mode::all().contains(&published.mode), "{}", published.curve.name);
        }
        for &UserShare { percent, .. } in &*USER_SHARES {
            assert!(Mode::all().contains(&Mode::Share(percent)), "{percent}");
        }
    }

    #[test]
    fn more_for_the_router_is_less_for_programs() {
        assert!(USER_SHARES.is_sorted_by(|a, b| a.percent < b.percent && a.share > b.share));
        for &UserShare { percent, share } in &*USER_SHARES {
            // Time that is not charged to the router is missing as well: docs/reference/papers.md,
            // *Livelock curves*.
            assert!(share <= 1.0 - f64::from(percent) / 100.0, "{percent}");
        }
    }
}
