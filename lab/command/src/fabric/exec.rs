//! `apus-lab fabric exec`: runs a program in a host of a fabric.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use apus_testbed::fabric::persistent::{self, FabricName};
use clap::Args;

use apus_command_line::failure::Failure;

/// Run a program in a host of a fabric
///
/// The program runs in the current directory, with the standard streams, the files and the
/// environment of this command, and with APUS_NODE (such as h1) and APUS_ADDRESS (such as
/// 10.77.0.1) in addition; only the network is the host's. The exit status is the program's, or 127
/// if there is no such program. In the fabric of an ordinary user the program sees itself as root,
/// and may change the host's network as root may.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus-lab fabric exec h1 -- ping -c 3 10.77.0.2
  apus-lab fabric exec --name slow h2 -- apus serve 10.77.0.2:4000
  apus-lab fabric exec h1 bash")]
pub(super) struct ExecArguments {
    /// Name of the fabric
    #[arg(long, value_name = "NAME", default_value_t)]
    name: FabricName,
    /// The host: `h1`, `h2`, ...
    #[arg(value_name = "HOST")]
    host: String,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// Replaces this process with the program.
pub(super) fn run(arguments: &ExecArguments) -> Result<(), Failure> {
    let layout = persistent::find(&arguments.name)?;
    let node = layout.node(&arguments.host).map_err(|problem| Failure::Argument {
        argument: "HOST".to_owned(),
        problem: format!("fabric `{}` has no host `{}`: {problem}", arguments.name, arguments.host),
    })?;
    let mut words = layout.enter(node).into_iter();
    let first = words.next().unwrap_or_default();
    let error = Command::new(&first)
        .args(words)
        .args(&arguments.command)
        .env("APUS_NODE", &arguments.host)
        .env("APUS_ADDRESS", layout.address(node).to_string())
        .exec();
    Err(Failure::of(&format!("start {}", first.display()), &error))
}
