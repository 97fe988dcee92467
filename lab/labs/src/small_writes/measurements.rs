//! The measurements of a variant.

use super::anatomy::Anatomy;
use super::tally::Tally;
use super::variant::{Carrier, Variant};
use apus_report::runs::{Measure, Runs};

/// The measurements of a variant.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) variant: &'static Variant,
    /// Times of exchanges; at least one run.
    pub(super) runs: Runs<Tally>,
    /// The content of its packets, or why they could not be captured.
    pub(super) anatomy: Result<Anatomy, String>,
}

/// Milliseconds per thousand exchanges.
pub(super) const PER_THOUSAND: Measure<Tally> = |run| Some(run.per_thousand());

impl Measured {
    /// Returns the median milliseconds per thousand exchanges.
    pub(super) fn per_thousand(&self) -> f64 {
        self.runs.median(PER_THOUSAND).expect("at least one run")
    }

    /// Returns the segments and the delayed ACKs per exchange that the kernel counted for all
    /// programs while times were taken; `None` if it does not count, or for apus.
    pub(super) fn counted(&self) -> Option<(f64, f64)> {
        let exchanges: u64 = self.runs.results().map(|run| run.exchanges).sum();
        let counted: Vec<_> = self.runs.results().map(|run| run.counted).collect::<Option<_>>()?;
        let each = |count: u64| count as f64 / exchanges.max(1) as f64;
        let segments = each(counted.iter().map(|each| each.segments).sum());
        let delayed_acks = each(counted.iter().map(|each| each.delayed_acks).sum());
        (self.variant.carrier == Carrier::Tcp).then_some((segments, delayed_acks))
    }
}
