//! `apus trace timeline`: the stages of short RPCs.

use apus_traces::view;
use clap::Args;

use super::report::ReportArguments;
use super::rpc_filter::FilterArguments;
use apus_command_line::failure::Failure;

/// Show where the microseconds of short RPCs go, stage by stage
///
/// For each stage at the client, on the network, at the server and back, the report shows its mean,
/// its share of the round trip and its percentiles. The means of the stages add up to the round
/// trip that the client measured; both are printed with their difference. By default the report
/// covers RPCs whose messages have at most 1000 bytes, which fit into one packet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace timeline client.tt server.tt
  apus trace timeline client.tt server.tt --max-bytes 100 --html timeline.html")]
pub(super) struct TimelineArguments {
    #[command(flatten)]
    report: ReportArguments,
    #[command(flatten)]
    rpcs: FilterArguments,
}

/// Length of a short message in bytes, at most; it always fits into one packet.
const MAX_SHORT: u64 = 1_000;

/// Prints the report.
pub(super) fn run(arguments: &TimelineArguments) -> Result<(), Failure> {
    let filter = arguments.rpcs.filter(Some(MAX_SHORT));
    arguments.report.show(|merged| view::timeline(merged, &filter))
}
