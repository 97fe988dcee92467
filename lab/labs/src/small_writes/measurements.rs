//! The measurements of a variant.

use super::Variant;
use super::anatomy::Anatomy;
use super::tally::Tally;

/// The measurements of a variant.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) variant: &'static Variant,
    /// Of each run that has a result.
    pub(super) runs: Vec<Tally>,
    /// The numbers of these runs, from 1.
    pub(super) numbers: Vec<usize>,
    /// What its packets show, or why they could not be captured.
    pub(super) anatomy: Result<Anatomy, String>,
}

/// Returns the milliseconds of a thousand exchanges, run by run.
pub(super) fn per_thousand(measured: &Measured) -> Vec<f64> {
    measured.runs.iter().map(Tally::per_thousand).collect()
}

impl Measured {
    /// Returns a figure of each run, with the number of the run.
    pub(super) fn by_run(&self, figure: impl Fn(&Tally) -> f64) -> Vec<(usize, f64)> {
        self.numbers.iter().copied().zip(self.runs.iter().map(figure)).collect()
    }
}
