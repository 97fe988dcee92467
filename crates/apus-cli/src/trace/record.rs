//! How does one get traces to look at?

use std::path::PathBuf;

use apus_lab::Poll;
use apus_lab::process::Host;
use apus_lab::traces::record::{Options, record};
use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::path::Path;

/// Record the traces of a client and a server on this machine
///
/// Two processes exchange messages for a while, and each writes its trace: `client.tt` and `server.tt`, ready for the
/// other commands. Printed is what the client measured by its own clock, beside what the stages of the traced RPCs add up
/// to. Traces keep the last thousands of records of each thread: some hundred RPCs, however long it takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace record
  apus trace record --out traces --size 500000 --outstanding 8
  apus trace record --path auto --traced sampled=10 --json")]
pub(super) struct Arguments {
    /// Put the files into this directory; it is made if it is missing
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Payload bytes of a request and of its reply: 1 to 64000000
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().size, allow_negative_numbers = true)]
    size: usize,
    /// Requests under way at the same time: 1 to 65536
    #[arg(long, value_name = "REQUESTS", default_value_t = Options::default().outstanding, allow_negative_numbers = true)]
    outstanding: usize,
    /// Seconds that messages are exchanged: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().seconds, allow_negative_numbers = true)]
    seconds: f64,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for so long and then
    /// sleep (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = Options::default().poll)]
    poll: Poll,
    /// Which way messages go
    #[arg(long, value_enum, default_value = "udp")]
    path: Path,
    /// Which RPCs are traced: `all`, or `sampled=N` for one in N
    #[arg(long, value_name = "WHICH", default_value_t = Options::default().traced)]
    traced: String,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Records, and prints what the traces are worth.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { out, size, outstanding, seconds, poll, path, traced, json } = arguments;
    let options = Options {
        out: out.clone(),
        size: *size,
        outstanding: *outstanding,
        seconds: *seconds,
        poll: *poll,
        local: matches!(path, Path::Auto),
        traced: traced.clone(),
    };
    let outcome = record(&options, &Host::this_program()?)?;
    if *json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}
