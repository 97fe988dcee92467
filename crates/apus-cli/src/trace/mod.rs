//! Where do the microseconds of an RPC go?
//!
//! ```text
//!   timeline, delays, rtt, rpcs, grants, handoffs, lost, cores   a report each (apus-trace finds out, apus-lab shows)
//!   export       for the Perfetto UI
//!   record       traces of a client and a server on this machine
//!   dump         the trace of a process that runs; `control` stops and resumes it, and says how it stands
//!     processes  which of them
//!     traces     the files: reading and merging them
//!     chosen     which RPCs a report is about
//!     asked      what can be asked of every report, and where it goes
//!     about_rpcs what can be asked of most of them
//! ```

mod about_rpcs;
mod asked;
mod chosen;
mod control;
mod cores;
mod dump;
mod export;
mod grants;
mod processes;
mod record;
mod rpcs;
mod timeline;
mod traces;

use apus_lab::traces as reports;
use clap::{Args, Subcommand};

use self::about_rpcs::AboutRpcs;
use crate::failure::Failure;

/// Time traces: where do the microseconds of an RPC go?
///
/// A process that uses apus keeps the last thousands of things that each of its threads did, and writes them to a file
/// when it is told to (`dump`), or when something strange happens. A report is made of one such file, or of those of all that
/// talked with each other: their clocks are aligned by the packets themselves, and how well that is known is said.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus trace record --out traces
  apus trace dump 4711 --out server.tt
  apus trace timeline traces/client.tt traces/server.tt
  apus trace export --perfetto trace.pftrace traces/client.tt traces/server.tt"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(record::Arguments),
    Dump(dump::Arguments),
    Freeze(control::Freeze),
    Resume(control::Resume),
    Status(control::Status),
    Timeline(timeline::Arguments),
    /// How long do packets take, stage by stage?
    ///
    /// From being queued at the sender to being handled at the receiver, at percentiles 0, 10, 30, 50, 70, 90, 99 and 100:
    /// requests and responses, short ones, unscheduled bytes, granted bytes and what was sent again, and GRANTs and RESENDs.
    /// Wants the traces of both ends.
    #[command(after_help = "Examples:
  apus trace delays client.tt server.tt
  apus trace delays client.tt server.tt --min-bytes 100000 --json")]
    Delays(AboutRpcs),
    /// How are round trips distributed, and what have the slowest 1 % in common?
    ///
    /// Percentiles by the length of messages; then the slowest 1 %, each by the median of its length, beside all others: in
    /// which stages they spent more time, and what happened to them more often (bytes asked for again, a thread that slept or
    /// stood still, a long message beside them, ...).
    #[command(after_help = "Examples:
  apus trace rtt client.tt server.tt
  apus trace rtt client.tt server.tt --peer 10.0.0.2 --html rtt.html")]
    Rtt(AboutRpcs),
    Rpcs(rpcs::Arguments),
    Grants(grants::Arguments),
    /// How long does it take from ready to running, and who woke whom?
    ///
    /// Delays from handing a message to a waiting thread until it runs, of threads that slept and of threads that spun, for
    /// each two threads; how often the thread that polls took a message itself; and how long it takes to pass the turn to
    /// poll.
    #[command(after_help = "Examples:
  apus trace handoffs server.tt
  apus trace handoffs client.tt server.tt --json")]
    Handoffs(AboutRpcs),
    /// What was asked for again, and why?
    ///
    /// Each RESEND with its cause as both traces tell it: lost on the way, dropped by the receiver, late, not sent yet, or the
    /// application still at work; how long the bytes then took to come; and counts of what else should be rare.
    #[command(after_help = "Examples:
  apus trace lost client.tt server.tt
  apus trace lost client.tt server.tt --id 3458764513820540930")]
    Lost(AboutRpcs),
    Cores(cores::Arguments),
    Export(export::Arguments),
}

/// Reads the traces, and shows what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Record(arguments) => record::run(arguments),
        Command::Dump(arguments) => dump::run(arguments),
        Command::Freeze(arguments) => control::freeze(arguments),
        Command::Resume(arguments) => control::resume(arguments),
        Command::Status(arguments) => control::status(arguments),
        Command::Timeline(arguments) => timeline::run(arguments),
        Command::Delays(arguments) => arguments.show(reports::delays),
        Command::Rtt(arguments) => arguments.show(reports::rtt),
        Command::Rpcs(arguments) => rpcs::run(arguments),
        Command::Grants(arguments) => grants::run(arguments),
        Command::Handoffs(arguments) => arguments.show(reports::handoffs),
        Command::Lost(arguments) => arguments.show(reports::lost),
        Command::Cores(arguments) => cores::run(arguments),
        Command::Export(arguments) => export::run(arguments),
    }
}
