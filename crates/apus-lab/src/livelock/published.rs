//! What did the paper find?
//!
//! J. Mogul and K. Ramakrishnan, USENIX 1996: a DECstation 3000/300 between two 10 Mbit/s Ethernets, packets
//! per second in and out. Peak and livelock of the unmodified kernel are stated in the text; the points
//! between follow from these two by its own model (published numbers D.3), and agree with its figure 6-1.
//! The flat lines are read from its figures.

/// A curve of the paper: what went in and what came out, in packets per second.
pub(super) struct Published {
    pub(super) name: &'static str,
    pub(super) points: &'static [(f64, f64)],
}

/// Peak of the unmodified kernel without `screend`: what curves are scaled by.
pub(super) const PEAK: f64 = 4_700.0;

/// Figure 6-1, and figure 6-3 for the lines that stay flat: without `screend`.
pub(super) const WITHOUT: [Published; 3] = [
    Published {
        name: "1996: unmodified",
        points: &[
            (1e3, 1e3),
            (3e3, 3e3),
            (4.7e3, 4.7e3),
            (6e3, 4.1e3),
            (8e3, 3_176.0),
            (10e3, 2_253.0),
            (12e3, 1_330.0),
            (14_880.0, 0.0),
        ],
    },
    Published { name: "1996: polling, quota 5", points: &[(1e3, 1e3), (5e3, 5e3), (12e3, 5e3)] },
    Published {
        name: "1996: polling, no quota",
        points: &[(1e3, 1e3), (4.7e3, 4.7e3), (6e3, 0.0), (12e3, 0.0)],
    },
];

/// Figures 6-1 and 6-4: with `screend`.
pub(super) const WITH: [Published; 2] = [
    Published {
        name: "1996: unmodified",
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
        points: &[(1e3, 1e3), (2.5e3, 2.5e3), (12e3, 2.5e3)],
    },
];

/// Thresholds in per cent, and the share of the core that user programs had at high rates (figure 7-1; the
/// middle of what can be read from it).
pub(super) const USER_SHARES: [(u32, f64); 4] = [(25, 0.70), (50, 0.45), (75, 0.22), (100, 0.0)];
