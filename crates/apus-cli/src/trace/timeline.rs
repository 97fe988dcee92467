//! Where do the microseconds of short RPCs go?

use apus_lab::traces;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// Where do the microseconds of short RPCs go?
///
/// For each stage, at the client, on the network, at the server and back: its mean, its share of the round trip, and its
/// percentiles. The stages' means add up to the round trip that the client measured; both are printed with their
/// difference. Unless something else is chosen, RPCs whose messages have 1000 bytes at most, which are one packet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace timeline client.tt server.tt
  apus trace timeline client.tt server.tt --max-bytes 100 --html timeline.html")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
}

/// Longer messages are not short: they may be more than a packet.
const SHORT: u64 = 1_000;

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let filter = arguments.chosen.filter(Some(SHORT));
    arguments.asked.show(|merged| traces::timeline(merged, &filter))
}
