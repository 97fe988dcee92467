//! Published curves of receive livelock: Mogul and Ramakrishnan, USENIX 1996.

use std::sync::LazyLock;

use serde::Deserialize;

use super::Mode;
use apus_report::published::{grouped, records};

/// A curve of the paper: packets per second in and out.
pub(super) struct Published {
    /// Whether packets pass the filter, `screend`.
    filter: bool,
    pub(super) name: String,
    /// The mode that does the same here.
    pub(super) mode: Mode,
    /// Offered rates, ascending, with the output.
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Point {
    filter: bool,
    name: String,
    mode: String,
    input: f64,
    output: f64,
}

static CURVES: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let points: Vec<Point> = records(include_str!("published.csv"));
    let curve = |((filter, name), points): ((bool, String), Vec<Point>)| Published {
        filter,
        name,
        mode: points[0].mode.parse().expect("a mode of this experiment"),
        points: points.iter().map(|point| (point.input, point.output)).collect(),
    };
    grouped(points, |point| (point.filter, point.name.clone())).into_iter().map(curve).collect()
});

/// Returns the curves with the filter or without it.
pub(super) fn curves(filter: bool) -> impl Iterator<Item = &'static Published> + Clone {
    CURVES.iter().filter(move |published| published.filter == filter)
}

impl Published {
    /// Returns the highest output.
    pub(super) fn peak(&self) -> f64 {
        self.points.iter().map(|(_, output)| *output).fold(0.0, f64::max)
    }
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

    /// Output of the model in docs/reference/papers.md, *Livelock cost model*, from the peak and the rate at which
    /// nothing comes out.
    fn model(input: f64, peak: f64, livelock: f64) -> f64 {
        let urgent = 1.0 / livelock;
        let rest = 1.0 / peak - urgent;
        input.min(((1.0 - input * urgent) / rest).max(0.0))
    }

    #[test]
    fn the_unmodified_kernel_is_as_the_model_says() {
        let [without, with] = [false, true].map(|filter| curves(filter).collect::<Vec<_>>());
        for (published, peak, livelock) in
            [(&without[0], 4_700.0, 14_880.0), (&with[0], 2_000.0, 6_000.0)]
        {
            assert_eq!(published.peak(), peak);
            for &(input, output) in &published.points {
                let expected = model(input, peak, livelock);
                assert!((output - expected).abs() <= 0.02 * peak, "{input}: {output}, {expected}");
            }
            assert_eq!(published.points.last().unwrap().1, 0.0, "livelock");
        }
    }

    #[test]
    fn what_the_paper_mended_stays_flat_and_what_it_did_not_collapses() {
        for published in &*CURVES {
            assert!(published.points.is_sorted_by(|a, b| a.0 < b.0), "{}", published.name);
            let most = published.points.iter().all(|(input, output)| output <= input);
            assert!(most, "{}: more comes out than goes in", published.name);
            let last = published.points.last().unwrap().1 / published.peak();
            let flat = matches!(published.mode, Mode::PollQuota(_) | Mode::PollFeedback);
            assert_eq!(last, if flat { 1.0 } else { 0.0 }, "{}", published.name);
        }
    }

    #[test]
    fn each_has_a_counterpart_among_the_modes_that_are_measured() {
        for published in &*CURVES {
            assert!(Mode::all().contains(&published.mode), "{}", published.name);
        }
        for &UserShare { percent, .. } in &*USER_SHARES {
            assert!(Mode::all().contains(&Mode::Share(percent)), "{percent}");
        }
    }

    #[test]
    fn more_for_the_router_is_less_for_programs() {
        assert!(USER_SHARES.is_sorted_by(|a, b| a.percent < b.percent && a.share > b.share));
        for &UserShare { percent, share } in &*USER_SHARES {
            // Time that is not charged to the router is missing, too: docs/reference/papers.md, *Livelock curves*.
            assert!(share <= 1.0 - f64::from(percent) / 100.0, "{percent}");
        }
    }
}
