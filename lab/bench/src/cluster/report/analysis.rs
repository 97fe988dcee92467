//! The analysis of a cluster: combines the runs of all transports.

use super::input::{Measured, Run, Settings, Transport};
use super::rows;
use crate::slowdown::{Curve, Summary};
use apus_report::result::{Outcome, Ratio, Row};

/// The result of the cluster benchmark, with the underlying runs.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Rows, ratios and settings.
    pub outcome: Outcome,
    pub(super) settings: Settings,
    /// Transports with a result.
    pub(super) transports: Vec<Transport>,
    /// One curve per transport.
    pub(super) curves: Vec<Curve>,
}

impl Analysis {
    /// Returns the analysis of the measurements.
    #[must_use]
    pub fn of(measured: Measured) -> Self {
        let config = measured.settings.config(&measured.transports);
        let mut outcome = Outcome::new("cluster", config);
        outcome.notes = rows::notes(&measured);
        let Measured { settings, mut transports, .. } = measured;
        let missing: Vec<Row> =
            transports.iter().filter(|each| each.runs.is_empty()).map(rows::missing).collect();
        transports.retain(|transport| !transport.runs.is_empty());
        let curves: Vec<Curve> = transports.iter().map(curve).collect();
        let rows = transports.iter().zip(&curves);
        let rows = rows.map(|(transport, curve)| rows::row(transport, curve));
        outcome.rows = rows.chain(missing).collect();
        outcome.ratios = rows::ratios(&transports);
        outcome.comparisons = rows::comparisons(&transports);
        Self { outcome, settings, transports, curves }
    }

    /// Returns the ratios of two transports' slowdowns of short messages, run by run: p50 and p99.
    /// Empty if either has no result.
    #[must_use]
    pub fn ratios(&self, one: &str, other: &str) -> Vec<(String, Ratio)> {
        let named = |name| self.transports.iter().find(|each| each.row() == name);
        let pair = named(one).zip(named(other));
        pair.map(|(one, other)| rows::ratios_of(one, other)).unwrap_or_default()
    }
}

fn curve(transport: &Transport) -> Curve {
    let runs: Vec<&Summary> = transport.runs.iter().map(|run: &Run| &run.summary).collect();
    Curve::of(&transport.row(), &runs)
}
