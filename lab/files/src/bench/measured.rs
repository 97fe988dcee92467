//! The samples of a work.

use super::stage::Sample;
use super::works::Work;

/// The samples of a work by a peer on a network.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) rtt: f64,
    pub(super) work: &'static Work,
    pub(super) peer: String,
    /// By the number of the run.
    pub(super) runs: Vec<(usize, Sample)>,
    /// Why it has failed, if it has.
    pub(super) failure: Option<String>,
}
