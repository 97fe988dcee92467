//! `apus trace`: time traces, recorded, dumped, analysed and exported.
//!
//! ```text
//!   timeline, delays, rtt, rpcs, grants, handoffs, lost, cores, files
//!                 one report each, built by `apus-traces`
//!   export        traces for the Perfetto UI
//!   record        the traces of a client and a server on this machine
//!   dump          the trace of a running process
//!   control       freezes and resumes a trace, and shows its status
//!
//!   trace_files   the files of a report, read and merged
//!   report        arguments of every report; rpc_report, of reports that select RPCs
//!   rpc_filter    arguments that select RPCs
//!   gap           the length of gaps as an argument
//! ```

mod control;
mod cores;
mod dump;
mod export;
mod files;
mod gap;
mod grants;
mod record;
mod report;
mod rpc_filter;
mod rpc_report;
mod rpcs;
mod timeline;
mod trace_files;

use apus_traces::view;
use clap::{Args, Subcommand};

use self::rpc_report::RpcReportArguments;
use apus_command_line::failure::Failure;

/// Record and analyse time traces: where the microseconds of an RPC go
///
/// A process that uses apus keeps the last 16384 records of each of its threads. It writes them to
/// a file on demand (`apus trace dump`), or automatically when something unusual happens. A report
/// reads one such file, or those of all processes that exchanged messages: it aligns their clocks
/// with the help of the packets, and says how exact the alignment is.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus trace record --out traces
  apus trace dump 4711 --out server.tt
  apus trace timeline traces/client.tt traces/server.tt
  apus trace export --perfetto trace.pftrace traces/client.tt traces/server.tt"
)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Record(record::RecordArguments),
    Dump(dump::DumpArguments),
    Freeze(control::Freeze),
    Resume(control::Resume),
    Status(control::Status),
    Timeline(timeline::TimelineArguments),
    /// Show how long packets take, stage by stage
    ///
    /// The report shows percentiles 0, 10, 30, 50, 70, 90, 99 and 100 of each stage, from the queue
    /// of the sender to the end of the handling at the receiver. It separates requests from
    /// responses, each into short messages, unscheduled bytes, granted bytes and retransmissions,
    /// and shows GRANTs and RESENDs. It needs the traces of both ends.
    #[command(after_help = "Examples:
  apus trace delays client.tt server.tt
  apus trace delays client.tt server.tt --min-bytes 100000 --json")]
    Delays(RpcReportArguments),
    /// Show the distribution of round trips, and what the slowest 1 % have in common
    ///
    /// The report shows percentiles by the length of messages. It then compares the slowest 1 %,
    /// each relative to the median of its length, with all others: the stages that took longer, and
    /// events that occurred more often (a RESEND, a thread that slept or stood still, a long
    /// message at the same time, ...).
    #[command(after_help = "Examples:
  apus trace rtt client.tt server.tt
  apus trace rtt client.tt server.tt --peer 10.0.0.2 --html rtt.html")]
    Rtt(RpcReportArguments),
    Rpcs(rpcs::RpcsArguments),
    Grants(grants::GrantsArguments),
    /// Show how long threads take from ready to running, and which thread woke which
    ///
    /// The report shows, for each pair of threads, the delay from handing a message to a waiting
    /// thread until that thread runs, separately for threads that slept and threads that spun. It
    /// also shows how often the polling thread took a message itself, and how long it takes to pass
    /// the poll role to another thread.
    #[command(after_help = "Examples:
  apus trace handoffs server.tt
  apus trace handoffs client.tt server.tt --json")]
    Handoffs(RpcReportArguments),
    /// Show the RESENDs and their causes
    ///
    /// The report gives the cause of each RESEND as both traces tell it: the bytes were lost on the
    /// way, dropped by the receiver, late or not yet sent, or the application was still at work. It
    /// also shows how long the bytes then took to arrive, and counts other events that should be
    /// rare.
    #[command(after_help = "Examples:
  apus trace lost client.tt server.tt
  apus trace lost client.tt server.tt --id 3458764513820540930")]
    Lost(RpcReportArguments),
    Cores(cores::CoresArguments),
    Files(files::FilesArguments),
    Export(export::ExportArguments),
}

/// Executes the subcommand.
pub(crate) fn run(arguments: &TraceArguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Record(arguments) => record::run(arguments),
        Command::Dump(arguments) => dump::run(arguments),
        Command::Freeze(arguments) => control::freeze(arguments),
        Command::Resume(arguments) => control::resume(arguments),
        Command::Status(arguments) => control::status(arguments),
        Command::Timeline(arguments) => timeline::run(arguments),
        Command::Delays(arguments) => arguments.show(view::delays),
        Command::Rtt(arguments) => arguments.show(view::rtt),
        Command::Rpcs(arguments) => rpcs::run(arguments),
        Command::Grants(arguments) => grants::run(arguments),
        Command::Handoffs(arguments) => arguments.show(view::handoffs),
        Command::Lost(arguments) => arguments.show(view::losses),
        Command::Cores(arguments) => cores::run(arguments),
        Command::Files(arguments) => files::run(arguments),
        Command::Export(arguments) => export::run(arguments),
    }
}
