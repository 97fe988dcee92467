//! How are round trips distributed, and what have the slowest in common?

use apus_lab::traces;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// How are round trips distributed, and what have the slowest 1 % in common?
///
/// Percentiles by the length of messages; then the slowest 1 %, each by the median of its length, beside all others: in
/// which stages they spent more time, and what happened to them more often (bytes asked for again, a thread that slept or
/// stood still, a long message beside them, ...).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace rtt client.tt server.tt
  apus trace rtt client.tt server.tt --peer 10.0.0.2 --html rtt.html")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let filter = arguments.chosen.filter(None);
    arguments.asked.show(|merged| traces::rtt(merged, &filter))
}
