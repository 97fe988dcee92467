//! What can be asked of a report on RPCs?

use apus_lab::traces::Shown;
use apus_trace::merge::Merged;
use apus_trace::report::Filter;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// The traces, where the report goes, and which RPCs it is about.
#[derive(Debug, Args)]
pub(super) struct AboutRpcs {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
}

impl AboutRpcs {
    /// Makes the report and shows it.
    ///
    /// # Errors
    ///
    /// A trace cannot be read, or what was found not be written.
    pub(super) fn show(&self, report: fn(&Merged, &Filter) -> Shown) -> Result<(), Failure> {
        let filter = self.chosen.filter(None);
        self.asked.show(|merged| report(merged, &filter))
    }
}
