//! What load did transports carry in the paper?
//!
//! Figure 15 of SIGCOMM 2018 as far as it is known (published numbers A.5): ranges, remembered, whose method
//! the paper leaves open. Hold the difference that overcommitment makes against them, not a digit.

use std::ops::RangeInclusive;

use super::{Evidence, Scheme, same_workload};

/// The highest load that a transport carries without a backlog that grows.
#[derive(Clone, Debug, PartialEq)]
pub struct SustainableLoad {
    /// The transport.
    pub scheme: Scheme,
    /// Name of the workload; `None` for a range over the paper's workloads.
    pub workload: Option<&'static str>,
    /// Messages that a receiver grants at the same time, where the entry is for that number.
    pub overcommitment: Option<u32>,
    /// Share of the links to hosts that is busy.
    pub load: RangeInclusive<f64>,
    /// How sure the digits are.
    pub evidence: Evidence,
}

/// What is known of a transport: the first of [`SUSTAINABLE_LOADS`] for this workload or any, and for exactly
/// this overcommitment. `None` as overcommitment is the transport as it was set up in the paper.
#[must_use]
pub fn sustainable_load(
    workload: &str,
    scheme: Scheme,
    overcommitment: Option<u32>,
) -> Option<&'static SustainableLoad> {
    SUSTAINABLE_LOADS.iter().find(|each| {
        each.scheme == scheme
            && each.workload.is_none_or(|name| same_workload(name, workload))
            && each.overcommitment == overcommitment
    })
}

/// An entry for all workloads, as set up in the paper.
const fn any(scheme: Scheme, load: RangeInclusive<f64>, evidence: Evidence) -> SustainableLoad {
    SustainableLoad { scheme, workload: None, overcommitment: None, load, evidence }
}

/// An entry for W4, with so many messages granted at the same time.
const fn w4(granted: u32, load: f64) -> SustainableLoad {
    SustainableLoad {
        scheme: Scheme::Homa,
        workload: Some("w4"),
        overcommitment: Some(granted),
        load: load..=load,
        evidence: Evidence::RecalledHigh,
    }
}

/// All that is known; special entries before general ones.
///
/// That Homa reaches about 90 % is also what its simulator's front page says; that grants to one message at
/// a time can waste 40 % of the bandwidth, what the description of its protocol says.
pub static SUSTAINABLE_LOADS: [SustainableLoad; 7] = [
    w4(1, 0.63),
    w4(7, 0.89),
    any(Scheme::Homa, 0.87..=0.92, Evidence::RecalledMedium),
    any(Scheme::PHost, 0.58..=0.73, Evidence::RecalledHigh),
    SustainableLoad {
        scheme: Scheme::Ndp,
        workload: Some("w5"),
        overcommitment: None,
        load: 0.70..=0.70,
        evidence: Evidence::RecalledHigh,
    },
    any(Scheme::PFabric, 0.75..=0.90, Evidence::RecalledLow),
    any(Scheme::Pias, 0.75..=0.90, Evidence::RecalledLow),
];
