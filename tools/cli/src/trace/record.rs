//! `apus trace record`: traces of a client and a server on this machine.

use std::path::PathBuf;

use apus::PollMode;
use apus_bench::trace_record::{Options, record};
use apus_testbed::process::Spawner;
use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::path::Path;

/// Record the traces of a client and a server on this machine
///
/// Two processes exchange messages for some time, and each writes its trace for the other commands: `client.tt` and
/// `server.tt`. The command prints what the client measured with its own clock beside the sum of the stages of the
/// traced RPCs. A trace keeps the last 16384 records of each thread, which are some hundred RPCs however long the
/// recording takes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace record
  apus trace record --out traces --size 500000 --outstanding 8
  apus trace record --path auto --traced sampled=10 --json")]
pub(super) struct Arguments {
    /// Write the files to this directory, which is created if it does not exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Size of each request and of its reply in bytes: 1 to 64000000
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().size, allow_negative_numbers = true)]
    size: usize,
    /// Outstanding requests: 1 to 65536
    #[arg(long, value_name = "REQUESTS", default_value_t = Options::default().outstanding, allow_negative_numbers = true)]
    outstanding: usize,
    /// Seconds for which messages are exchanged: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().seconds, allow_negative_numbers = true)]
    seconds: f64,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that time and then sleeps
    /// (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = Options::default().poll)]
    poll: PollMode,
    /// How messages reach peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value = "udp")]
    path: Path,
    /// Which RPCs are traced: `all`, or `sampled=N` for one RPC in N
    #[arg(long, value_name = "WHICH", default_value_t = Options::default().traced)]
    traced: String,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Records the traces, and prints how well they agree with the client's measurement.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { out, size, outstanding, seconds, poll, path, traced, json } = arguments;
    let options = Options {
        out: out.clone(),
        size: *size,
        outstanding: *outstanding,
        seconds: *seconds,
        poll: *poll,
        local: *path == Path::Auto,
        traced: traced.clone(),
    };
    let outcome = record(&options, &Spawner::this_program()?)?;
    if *json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}
