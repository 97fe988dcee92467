//! Arguments of the reports that select RPCs and have no further options.

use apus_traces::merge::MergedTraces;
use apus_traces::report::RpcFilter;
use apus_traces::view::ReportView;
use clap::Args;

use super::report::ReportArguments;
use super::rpc_filter::FilterArguments;
use apus_command_line::failure::Failure;

/// The traces, the form of the output, and the selected RPCs.
#[derive(Debug, Args)]
pub(super) struct RpcReportArguments {
    #[command(flatten)]
    report: ReportArguments,
    #[command(flatten)]
    rpcs: FilterArguments,
}

impl RpcReportArguments {
    /// Makes the report on the selected RPCs and prints it.
    ///
    /// # Errors
    ///
    /// A trace cannot be read, or the report cannot be written.
    pub(super) fn show(
        &self,
        report: fn(&MergedTraces, &RpcFilter) -> ReportView,
    ) -> Result<(), Failure> {
        let filter = self.rpcs.filter(None);
        self.report.show(|merged| report(merged, &filter))
    }
}
