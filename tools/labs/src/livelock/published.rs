//! What did the paper find?
//!
//! J. Mogul and K. Ramakrishnan, USENIX 1996: a DECstation 3000/300 between two 10 Mbit/s Ethernets, packets
//! per second in and out. Peak and livelock of the unmodified kernel are stated in the text; the points
//! between follow from these two by its own model (published numbers D.3), and agree with its figure 6-1.
//! The flat lines are read from its figures.

use super::Mode;

/// A curve of the paper: what went in and what came out, in packets per second.
pub(super) struct Published {
    pub(super) name: &'static str,
    /// The mode that does the same here.
    pub(super) mode: Mode,
    /// Rates that were offered, ascending, with what came out.
    pub(super) points: &'static [(f64, f64)],
}

impl Published {
    /// The highest output.
    pub(super) fn peak(&self) -> f64 {
        self.points.iter().map(|(_, output)| *output).fold(0.0, f64::max)
    }
}

/// Figure 6-1, and figure 6-3 for the lines that stay flat: without `screend`.
pub(super) const WITHOUT: [Published; 3] = [
    Published {
        name: "1996: unmodified",
        mode: Mode::Interrupt,
        points: &[
            (1e3, 1e3),
            (2e3, 2e3),
            (3e3, 3e3),
            (4.7e3, 4.7e3),
            (6e3, 4.1e3),
            (8e3, 3_176.0),
            (10e3, 2_253.0),
            (12e3, 1_330.0),
            (14_880.0, 0.0),
        ],
    },
    Published {
        name: "1996: polling, quota 5",
        mode: Mode::PollQuota(5),
        points: &[(1e3, 1e3), (2e3, 2e3), (5e3, 5e3), (12e3, 5e3)],
    },
    Published {
        name: "1996: polling, no quota",
        mode: Mode::PollNoQuota,
        points: &[(1e3, 1e3), (2e3, 2e3), (4.7e3, 4.7e3), (6e3, 0.0), (12e3, 0.0)],
    },
];

/// Figures 6-1 and 6-4: with `screend`.
pub(super) const WITH: [Published; 2] = [
    Published {
        name: "1996: unmodified",
        mode: Mode::Interrupt,
        points: &[
            (1e3, 1e3),
            (2e3, 2e3),
            (3e3, 1.5e3),
            (4e3, 1e3),
            (4.7e3, 650.0),
            (6e3, 0.0),
            (12e3, 0.0),
        ],
    },
    Published {
        name: "1996: polling, feedback",
        mode: Mode::PollFeedback,
        points: &[(1e3, 1e3), (2.5e3, 2.5e3), (12e3, 2.5e3)],
    },
];

/// Thresholds in per cent, and the share of the core that user programs had at high rates (figure 7-1; the
/// middle of what can be read from it).
pub(super) const USER_SHARES: [(u32, f64); 4] = [(25, 0.70), (50, 0.45), (75, 0.22), (100, 0.0)];

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of the model in published numbers D.3, from the peak and the rate at which nothing comes out.
    fn model(input: f64, peak: f64, livelock: f64) -> f64 {
        let urgent = 1.0 / livelock;
        let rest = 1.0 / peak - urgent;
        input.min(((1.0 - input * urgent) / rest).max(0.0))
    }

    #[test]
    fn the_unmodified_kernel_is_as_the_model_says() {
        for (published, peak, livelock) in
            [(&WITHOUT[0], 4_700.0, 14_880.0), (&WITH[0], 2_000.0, 6_000.0)]
        {
            assert_eq!(published.peak(), peak);
            for &(input, output) in published.points {
                let expected = model(input, peak, livelock);
                assert!((output - expected).abs() <= 0.02 * peak, "{input}: {output}, {expected}");
            }
            assert_eq!(published.points.last().unwrap().1, 0.0, "livelock");
        }
    }

    #[test]
    fn what_the_paper_mended_stays_flat_and_what_it_did_not_collapses() {
        for published in WITHOUT.iter().chain(&WITH) {
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
        for published in WITHOUT.iter().chain(&WITH) {
            assert!(Mode::all().contains(&published.mode), "{}", published.name);
        }
        for (percent, _) in USER_SHARES {
            assert!(Mode::all().contains(&Mode::Share(percent)), "{percent}");
        }
    }

    #[test]
    fn more_for_the_router_is_less_for_programs() {
        assert!(USER_SHARES.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
        for (percent, share) in USER_SHARES {
            // What is not charged to the router is missing, too: published numbers D.2.
            assert!(share <= 1.0 - f64::from(percent) / 100.0, "{percent}");
        }
    }
}
