//! `apus trace record`: traces of a client and a server on this machine.

use apus_bench::trace_record::{Options, record};
use apus_testbed::process::Spawner;
use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::path::Path;

// The options explain the command.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    options: Options,
    /// How messages reach peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value = "udp")]
    path: Path,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Records the traces, and prints how well they agree with the client's measurement.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { options, path, json } = arguments;
    let options = Options { local: *path == Path::Auto, ..options.clone() };
    let outcome = record(&options, &Spawner::this_program()?)?;
    if *json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}
