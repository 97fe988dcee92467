//! Is enough granted, and does the link idle while work waits?

use apus_lab::traces;
use clap::Args;

use super::asked::{Asked, micros, nanos};
use crate::failure::Failure;

/// Is enough granted, and does the link idle while work waits?
///
/// Bytes that receivers have granted and that have not come, and bytes that senders may send and have not sent, over
/// time; and how long nothing came while a message had come in part, with the reason: nothing was granted, the sender had
/// grants and did not send, or everything was on its way.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace grants client.tt server.tt
  apus trace grants client.tt server.tt --gap-us 5 --html grants.html")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// A link idles if nothing comes for so many microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value = "20", value_parser = micros)]
    gap_us: f64,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let least = nanos(arguments.gap_us);
    arguments.asked.show(|merged| traces::grants(merged, least))
}
