//! Highest load that transports carried in the paper.
//!
//! Figure 15 of SIGCOMM 2018 as far as available (docs/reference/papers.md, *Load and wasted
//! bandwidth*): recalled ranges, whose method the paper leaves open. Compare the effect of
//! overcommitment with them, not digits.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use apus_workload::csv_table;
use serde::Deserialize;

use super::scheme::{Evidence, Scheme, same_workload};

/// Highest load that a transport sustains without a growing backlog.
#[derive(Clone, Debug, PartialEq)]
pub struct SustainableLoad {
    /// The transport.
    pub scheme: Scheme,
    /// Name of the workload; `None` for a range over the paper's workloads.
    pub workload: Option<String>,
    /// Messages that a receiver grants at the same time, if the entry applies to a specific number.
    pub overcommitment: Option<u32>,
    /// Share of time that links to hosts are busy.
    pub load: RangeInclusive<f64>,
    /// Reliability of the digits.
    pub evidence: Evidence,
}

/// A row of the table.
#[derive(Deserialize)]
struct Record {
    scheme: Scheme,
    workload: Option<String>,
    overcommitment: Option<u32>,
    load_min: f64,
    load_max: f64,
    evidence: Evidence,
}

impl From<Record> for SustainableLoad {
    fn from(record: Record) -> Self {
        let Record { scheme, workload, overcommitment, load_min, load_max, evidence } = record;
        Self { scheme, workload, overcommitment, load: load_min..=load_max, evidence }
    }
}

static TABLE: LazyLock<Vec<SustainableLoad>> = LazyLock::new(|| {
    let records = csv_table::rows::<Record>(include_str!("sustainable_load.csv"));
    records.into_iter().map(SustainableLoad::from).collect()
});

/// Returns all published loads; special entries precede general entries.
#[must_use]
pub fn sustainable_loads() -> &'static [SustainableLoad] {
    &TABLE
}

/// Returns the load of a transport: the first of [`sustainable_loads`] for this workload or any,
/// and for exactly this overcommitment. Without overcommitment, the transport is set up as in the
/// paper.
#[must_use]
pub fn sustainable_load(
    workload: &str,
    scheme: Scheme,
    overcommitment: Option<u32>,
) -> Option<&'static SustainableLoad> {
    sustainable_loads().iter().find(|each| {
        each.scheme == scheme
            && each.workload.as_deref().is_none_or(|name| same_workload(name, workload))
            && each.overcommitment == overcommitment
    })
}
