//! What happened to each RPC?

use apus_lab::traces;
use apus_trace::report::rpcs::Order;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// What happened to each RPC?
///
/// A line for each RPC that is chosen: who called whom when, lengths, round trip, time to the first grant, throughput of
/// sending, receiving and copying, and what happened to it that should be rare.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace rpcs client.tt server.tt --min-us 500
  apus trace rpcs client.tt server.tt --sort first-grant --limit 50")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
    /// What comes first: `time`, the earliest; `rtt`, `length`, `first-grant`: the longest; `transmit`, `receive`,
    /// `copy`: the slowest
    #[arg(long, value_name = "ORDER", default_value_t)]
    sort: Order,
    /// So many lines at most
    #[arg(long, value_name = "LINES", default_value_t = 20)]
    limit: usize,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { asked, chosen, sort, limit } = arguments;
    let filter = chosen.filter(None);
    asked.show(|merged| traces::rpcs(merged, &filter, *sort, *limit))
}
