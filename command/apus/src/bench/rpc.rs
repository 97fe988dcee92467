//! `apus bench rpc`: starts the program that measures typed services and tonic.
//!
//! It is a program of its own: the other sides (tonic with its transport, tarpc) would double the time to build this one.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::Failure;

/// Name of the program.
const PROGRAM: &str = "apus-bench-rpc";

/// Typed services and tonic over apus, beside tonic over HTTP/2 and tarpc
///
/// Starts the program apus-bench-rpc with these options; it is beside this program, or in PATH. It is built by
/// `cargo build --release --workspace`, or by `cargo build --release -p apus-bench` alone.
///
/// Rows: `call`, a bare call of an endpoint; `service`, a method of #[apus_rpc::service]; `tonic-apus` and `tonic-http2`, one generated
/// client over both; `tarpc`. p50 and p99 are of one call at a time, krps of --outstanding calls. With --hedging: two
/// servers that stall at random, called without and with hedging. `apus bench rpc -- --help` explains all options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus bench rpc
  apus bench rpc --seconds 3 --runs 5 --json
  apus bench rpc --only tonic-apus,tonic-http2
  apus bench rpc --hedging")]
pub(super) struct Arguments {
    /// Options of the program, such as --size, --outstanding, --only, --seconds, --runs, --seed, --json
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Replaces this process with the program.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let beside = env::current_exe().ok().map(|this| this.with_file_name(PROGRAM));
    let program = beside.filter(|path| path.exists()).unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(&arguments.options).exec();
    Err(match error.kind() {
        ErrorKind::NotFound => Failure::Work(format!(
            "{PROGRAM} is neither beside this program nor in PATH; build it with `cargo build --release -p apus-bench`"
        )),
        _ => Failure::of(&format!("start {}", program.display()), &error),
    })
}
