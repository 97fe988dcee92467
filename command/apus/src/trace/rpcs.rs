//! `apus trace rpcs`: one line for each RPC.

use apus_traces::report::rpcs::RpcOrder;
use apus_traces::view;
use clap::Args;

use super::report::ReportArguments;
use super::rpc_filter::FilterArguments;
use apus_command_line::failure::Failure;

/// List RPCs with their times, their throughput, and events that should be rare
///
/// Prints a line for each selected RPC: its id, when it was called and between which addresses,
/// lengths, round trip, time to the first grant, throughput of sending, receiving and copying, and
/// what happened to it that should be rare.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace rpcs client.tt server.tt --min-us 500
  apus trace rpcs client.tt server.tt --sort first-grant --limit 50")]
pub(super) struct RpcsArguments {
    #[command(flatten)]
    report: ReportArguments,
    #[command(flatten)]
    rpcs: FilterArguments,
    /// Order of the lines: `time` (earliest first), `rtt`, `length` or `first-grant` (longest
    /// first), `transmit`, `receive` or `copy` (slowest first)
    #[arg(long, value_name = "ORDER", default_value_t)]
    sort: RpcOrder,
    /// Maximum number of lines
    #[arg(long, value_name = "LINES", default_value_t = 20)]
    limit: usize,
}

/// Prints the report.
pub(super) fn run(arguments: &RpcsArguments) -> Result<(), Failure> {
    let RpcsArguments { report, rpcs, sort, limit } = arguments;
    let filter = rpcs.filter(None);
    report.show(|merged| view::rpcs(merged, &filter, *sort, *limit))
}
