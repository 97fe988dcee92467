//! The measurements of a variant.

use super::Variant;
use super::anatomy::Anatomy;
use super::tally::Tally;

/// The measurements of a variant.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) variant: &'static Variant,
    /// Run by run.
    pub(super) runs: Vec<Tally>,
    /// What its packets show, or why they could not be captured.
    pub(super) anatomy: Result<Anatomy, String>,
}

/// Returns the milliseconds of a thousand exchanges, run by run.
pub(super) fn per_thousand(measured: &Measured) -> Vec<f64> {
    measured.runs.iter().map(Tally::per_thousand).collect()
}
