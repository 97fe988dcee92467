//! `apus trace cores`: gaps during which a thread with work did not run.

use apus_traces::view;
use clap::Args;

use super::gap::{nanos, parse_micros};
use super::report::ReportArguments;
use apus_command_line::failure::Failure;

/// Show the gaps in which a thread had work and did not run
///
/// In such a gap the thread lost its core, or a system call took long. If several threads of a host
/// have a gap at the same time, the host itself stood still (an SMI, a hypervisor). The report also
/// shows how much of its time each thread worked and slept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace cores server.tt
  apus trace cores client.tt server.tt --gap-us 200 --json")]
pub(super) struct CoresArguments {
    #[command(flatten)]
    report: ReportArguments,
    /// Ignore gaps that are shorter
    #[arg(long, value_name = "MICROSECONDS", default_value = "50", value_parser = parse_micros)]
    gap_us: f64,
}

/// Prints the report.
pub(super) fn run(arguments: &CoresArguments) -> Result<(), Failure> {
    let shortest = nanos(arguments.gap_us);
    arguments.report.show(|merged| view::cores(merged, shortest))
}
