//! The paper's set-up of Homa for each workload.
//!
//! From the configuration of its simulator (docs/reference/papers.md, *Simulation set-up*), so the
//! figures are certain.

use std::sync::LazyLock;

use apus_workload::csv_table;
use serde::Deserialize;

use super::scheme::same_workload;

/// Returns the number of scheduled levels, the lowest of 8, which is also the number of messages
/// that a receiver grants at the same time (degree of overcommitment). The levels above them are
/// for unscheduled packets.
#[must_use]
pub fn scheduled_levels(workload: &str) -> Option<u32> {
    setup(workload).map(|setup| setup.scheduled_levels)
}

/// Returns the share of the busy time of links that is payload in the paper's definition of load;
/// the rest are headers and grants. The simulator multiplies the requested load with it: a load of
/// 0.8 of W1 is 0.8 x 0.657 of a link in payload.
#[must_use]
pub fn payload_share(workload: &str) -> Option<f64> {
    setup(workload).map(|setup| setup.payload_share)
}

/// Parameters that depend on the workload.
#[derive(Deserialize)]
struct Setup {
    workload: String,
    scheduled_levels: u32,
    payload_share: f64,
}

static TABLE: LazyLock<Vec<Setup>> = LazyLock::new(|| csv_table::rows(include_str!("setup.csv")));

fn setup(workload: &str) -> Option<&'static Setup> {
    TABLE.iter().find(|setup| same_workload(&setup.workload, workload))
}
