//! `apus-lab bench rpc`: starts the benchmark program for typed services and tonic.
//!
//! The program is separate because its contenders (tonic with its transport, tarpc) would double
//! the build time of this command.

use std::ffi::OsString;

use apus_command_line::failure::Failure;
use apus_command_line::program;
use clap::Args;

/// Name of the program.
const PROGRAM: &str = "apus-bench-rpc";

/// Typed services and tonic over apus, beside tonic over HTTP/2 and tarpc
///
/// Starts the program apus-bench-rpc with these options; it is next to this program, or in PATH. It
/// is built by `cargo build --release --workspace`, or by `cargo build --release -p apus-bench`
/// alone.
///
/// Rows: `call`, a bare call of an endpoint; `service`, a method of `#[apus_rpc::service]`;
/// `tonic-apus` and `tonic-http2`, one generated client over both; `tarpc`. p50 and p99 are of one
/// call at a time, krps of --outstanding calls. With --hedging: two servers that stall at random,
/// called without and with hedging. `apus-lab bench rpc -- --help` explains all options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus-lab bench rpc
  apus-lab bench rpc --seconds 3 --runs 5 --json
  apus-lab bench rpc --only tonic-apus,tonic-http2
  apus-lab bench rpc --hedging")]
pub(super) struct RpcArguments {
    /// Options of the program, such as --size, --outstanding, --only, --seconds, --runs, --seed,
    /// --json
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Replaces this process with the program.
pub(super) fn run(arguments: &RpcArguments) -> Result<(), Failure> {
    let remedy = "build it with `cargo build --release -p apus-bench`";
    Err(program::replace_with(PROGRAM, &arguments.options, remedy))
}
