//! How is a program run in a host of a fabric?

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use apus_lab::fabric::standing::{self, Name};
use clap::Args;

use crate::failure::Failure;

/// Run a program in a host
///
/// It runs where this command was called, with its standard streams, its files and its environment, and
/// APUS_NODE (like h1) and APUS_ADDRESS (like 10.77.0.1) besides; only the network is the host's. The
/// exit status is the program's, 127 if there is no such program. In the network of an ordinary user it
/// sees itself as root, and may do to the host's network what root may.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fabric exec h1 -- ping -c 3 10.77.0.2
  apus fabric exec --name slow h2 -- apus serve 10.77.0.2:4000
  apus fabric exec h1 bash")]
pub(super) struct Arguments {
    /// Name of the network
    #[arg(long, value_name = "NAME", default_value_t)]
    name: Name,
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

/// Becomes the program.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let layout = standing::find(&arguments.name)?;
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
