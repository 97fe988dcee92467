//! When did nothing run?

use apus_lab::traces;
use clap::Args;

use super::asked::{Asked, micros, nanos};
use crate::failure::Failure;

/// When did nothing run?
///
/// Gaps in which a thread that had work did not go on: it lost its core, or a system call took long; if several threads
/// of a host had one at the same time, the host itself stood still (an SMI, a hypervisor). And how much of its time each
/// thread worked and slept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace cores server.tt
  apus trace cores client.tt server.tt --gap-us 200 --json")]
pub(super) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// Shorter gaps do not count
    #[arg(long, value_name = "MICROSECONDS", default_value = "50", value_parser = micros)]
    gap_us: f64,
}

/// Shows the report.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let least = nanos(arguments.gap_us);
    arguments.asked.show(|merged| traces::cores(merged, least))
}
