//! How long does it take from ready to running, and who woke whom?

use apus_lab::traces;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// How long does it take from ready to running, and who woke whom?
///
/// Delays from handing a message to a waiting thread until it runs, of threads that slept and of threads that spun, for
/// each two threads; how often the thread that polls took a message itself; and how long it takes to pass the turn to
/// poll.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace handoffs server.tt
  apus trace handoffs client.tt server.tt --json")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let filter = arguments.chosen.filter(None);
    arguments.asked.show(|merged| traces::handoffs(merged, &filter))
}
