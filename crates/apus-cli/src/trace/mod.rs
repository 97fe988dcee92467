//! Where do the microseconds of an RPC go?
//!
//! ```text
//!   timeline, delays, rtt, rpcs, grants, handoffs, lost, cores   a report each (apus-trace finds out, apus-lab shows)
//!   export       for the Perfetto UI
//!   record       traces of a client and a server on this machine
//!     traces     the files: reading and merging them
//!     chosen     which RPCs a report is about
//!     asked      what can be asked of every report, and where it goes
//! ```

mod asked;
mod chosen;
mod cores;
mod delays;
mod export;
mod grants;
mod handoffs;
mod lost;
mod record;
mod rpcs;
mod rtt;
mod timeline;
mod traces;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Time traces: where do the microseconds of an RPC go?
///
/// A process that uses apus keeps the last thousands of things that each of its threads did, and writes them to a file
/// when it is told to, or when something strange happens. A report is made of one such file, or of those of all that
/// talked with each other: their clocks are aligned by the packets themselves, and how well that is known is said.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus trace record --out traces
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
    Timeline(timeline::Arguments),
    Delays(delays::Arguments),
    Rtt(rtt::Arguments),
    Rpcs(rpcs::Arguments),
    Grants(grants::Arguments),
    Handoffs(handoffs::Arguments),
    Lost(lost::Arguments),
    Cores(cores::Arguments),
    Export(export::Arguments),
}

/// Reads the traces, and shows what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Record(arguments) => record::run(arguments),
        Command::Timeline(arguments) => timeline::run(arguments),
        Command::Delays(arguments) => delays::run(arguments),
        Command::Rtt(arguments) => rtt::run(arguments),
        Command::Rpcs(arguments) => rpcs::run(arguments),
        Command::Grants(arguments) => grants::run(arguments),
        Command::Handoffs(arguments) => handoffs::run(arguments),
        Command::Lost(arguments) => lost::run(arguments),
        Command::Cores(arguments) => cores::run(arguments),
        Command::Export(arguments) => export::run(arguments),
    }
}
