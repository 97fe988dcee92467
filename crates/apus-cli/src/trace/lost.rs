//! What was asked for again, and why?

use apus_lab::traces;
use clap::Args;

use super::asked::Asked;
use super::chosen::Chosen;
use crate::failure::Failure;

/// What was asked for again, and why?
///
/// Each RESEND with its cause as both traces tell it: lost on the way, dropped by the receiver, late, not sent yet, or the
/// application still at work; how long the bytes then took to come; and counts of what else should be rare.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace lost client.tt server.tt
  apus trace lost client.tt server.tt --id 3458764513820540930")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    chosen: Chosen,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let filter = arguments.chosen.filter(None);
    arguments.asked.show(|merged| traces::lost(merged, &filter))
}
