//! `apus trace grants`: granted bytes over time, and idle links.

use apus_traces::view;
use clap::Args;

use super::gap::{nanos, parse_micros};
use super::report::ReportArguments;
use apus_command_line::failure::Failure;

/// Show whether enough is granted, and when the link idles although work waits
///
/// The report shows over time the bytes that receivers have granted and not yet received, and the
/// bytes that senders may send and have not sent. It also shows how long no packet arrived while a
/// message was incomplete, and why: nothing was granted, the sender had grants and did not send, or
/// everything was on its way.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace grants client.tt server.tt
  apus trace grants client.tt server.tt --gap-us 5 --html grants.html")]
pub(super) struct GrantsArguments {
    #[command(flatten)]
    report: ReportArguments,
    /// The link idles if nothing arrives for this many microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value = "20", value_parser = parse_micros)]
    gap_us: f64,
}

/// Prints the report.
pub(super) fn run(arguments: &GrantsArguments) -> Result<(), Failure> {
    let shortest = nanos(arguments.gap_us);
    arguments.report.show(|merged| view::grants(merged, shortest))
}
