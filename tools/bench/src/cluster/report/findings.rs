//! What did a cluster find out?

use std::fmt;

use super::measured::{Measured, Run, Settings, Transport};
use super::{csv, page, plots, rows, tables};
use crate::slowdown::{Curve, Percentile, Summary};
use apus_report::result::{Outcome, table};

/// The result of the cluster benchmark: the outcome as every experiment has one, and what is drawn from
/// it.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Rows, ratios and settings.
    pub outcome: Outcome,
    pub(super) settings: Settings,
    missing: Vec<String>,
    /// Those that have a result.
    pub(super) transports: Vec<Transport>,
    /// One for each of them.
    pub(super) curves: Vec<Curve>,
}

impl Findings {
    /// What was measured, put together.
    #[must_use]
    pub fn new(measured: Measured) -> Self {
        let config = measured.settings.config(&measured.transports);
        let mut outcome = Outcome::new("cluster", config);
        outcome.notes = rows::notes(&measured);
        let Measured { settings, mut transports, .. } = measured;
        let missing =
            transports.iter().filter(|each| each.runs.is_empty()).map(Transport::row).collect();
        transports.retain(|transport| !transport.runs.is_empty());
        let curves: Vec<Curve> = transports.iter().map(curve).collect();
        let rows = transports.iter().zip(&curves);
        outcome.rows = rows.map(|(transport, curve)| rows::row(transport, curve)).collect();
        outcome.ratios = rows::ratios(&transports);
        outcome.comparisons = rows::comparisons(&transports);
        Self { outcome, settings, missing, transports, curves }
    }

    /// Transports without a result: no run of theirs succeeded.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// A page that shows everything, for a browser; it loads nothing from elsewhere.
    #[must_use]
    pub fn html(&self) -> String {
        page::render(self)
    }

    /// The charts of the page as SVG files: name and content of each.
    #[must_use]
    pub fn svg_files(&self) -> Vec<(String, String)> {
        plots::all(self).iter().map(|plot| plot.file("")).collect()
    }

    /// Every run in lines, for spreadsheets: name and content of each file.
    #[must_use]
    pub fn csv_files(&self) -> Vec<(String, String)> {
        csv::files(&[], &[csv::Group { first: Vec::new(), transports: &self.transports }])
    }
}

fn curve(transport: &Transport) -> Curve {
    let runs: Vec<&Summary> = transport.runs.iter().map(|run: &Run| &run.summary).collect();
    Curve::of(&transport.row(), &runs)
}

/// The table for people.
impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLUMNS: [&str; 6] =
            ["short_p50", "short_p99", "short_p99_us", "all_p99", "achieved_load", "errors"];
        let before = tables::by_size(self, &[Percentile::P50, Percentile::P99]).to_string();
        let mut after = tables::machinery(self).to_string();
        let setups = page::in_words(&self.transports);
        let setups = setups.iter().map(|(name, words)| format!("{name}: {words}")).collect();
        for lines in [&setups, &self.settings.bound] {
            if !lines.is_empty() {
                after.push_str("\n\n");
                after.push_str(&lines.join("\n"));
            }
        }
        table::write(&self.outcome, &COLUMNS, [&before, &after], formatter)
    }
}
