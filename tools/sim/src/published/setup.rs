//! How was Homa set up for each workload in the paper?
//!
//! From the configuration of its simulator (published numbers A.1), so certain.

use super::same_workload;

/// Number of scheduled levels, the lowest of 8, which is also the number of messages that a receiver grants
/// at the same time (degree of overcommitment). The levels above them are for unscheduled packets.
#[must_use]
pub fn scheduled_levels(workload: &str) -> Option<u32> {
    setup(workload).map(|setup| setup.scheduled_levels)
}

/// Share of the busy time of links that is payload in the paper's reckoning of load; the rest are headers
/// and grants. The simulator multiplies the load asked for with it: a load of 0.8 of W1 is 0.8 x 0.657 of
/// a link in payload.
#[must_use]
pub fn payload_share(workload: &str) -> Option<f64> {
    setup(workload).map(|setup| setup.payload_share)
}

/// What depends on the workload.
struct Setup {
    workload: &'static str,
    scheduled_levels: u32,
    payload_share: f64,
}

fn setup(workload: &str) -> Option<&'static Setup> {
    SETUPS.iter().find(|setup| same_workload(setup.workload, workload))
}

static SETUPS: [Setup; 5] = [
    Setup { workload: "w1", scheduled_levels: 1, payload_share: 0.657 },
    Setup { workload: "w2", scheduled_levels: 3, payload_share: 0.796 },
    Setup { workload: "w3", scheduled_levels: 4, payload_share: 0.887 },
    Setup { workload: "w4", scheduled_levels: 7, payload_share: 0.898 },
    Setup { workload: "w5", scheduled_levels: 7, payload_share: 0.898 },
];
