//! How long do packets take, stage by stage?

use apus_lab::traces;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// How long do packets take, stage by stage?
///
/// From being queued at the sender to being handled at the receiver, at percentiles 0, 10, 30, 50, 70, 90, 99 and 100:
/// requests and responses, short ones, unscheduled bytes, granted bytes and what was sent again, and GRANTs and RESENDs.
/// Wants the traces of both ends.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace delays client.tt server.tt
  apus trace delays client.tt server.tt --min-bytes 100000 --json")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let filter = arguments.chosen.filter(None);
    arguments.asked.show(|merged| traces::delays(merged, &filter))
}
