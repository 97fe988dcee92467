//! `apus keys`: a small certificate authority for a cluster.
//!
//! ```text
//!   authority   the CA: its files, and issued certificates
//!   digits      bytes as hexadecimal digits
//!   init        creates a CA and the keys of this host, or a secret
//!   issue       creates the keys of another host
//!   show        names, fingerprints, dates and permissions of the files
//! ```

mod authority;
mod digits;
mod init;
mod issue;
mod show;

use clap::{Args, Subcommand};

use apus_command_line::failure::Failure;

/// Make and show the keys that hosts of a cluster seal their packets with
///
/// `init` makes a certificate authority (CA) and the keys of this host, `issue` the keys of another
/// host. Copy the folder of a host there over a channel that you trust, such as SSH, and never the
/// CA's own key `cluster.key`. Services then use the keys with `--sealed`, or with the table
/// `[security]` of their configuration file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus keys init
  apus keys issue db-1 --out db-1-keys
  apus keys show
  apus serve --sealed 127.0.0.1:4000")]
pub(crate) struct KeysArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitArguments),
    Issue(issue::IssueArguments),
    Show(show::ShowArguments),
}

/// Runs the selected subcommand.
///
/// # Errors
///
/// A file cannot be read or written, or already exists.
pub(crate) fn run(arguments: &KeysArguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Init(arguments) => init::run(arguments),
        Command::Issue(arguments) => issue::run(arguments),
        Command::Show(arguments) => show::run(arguments),
    }
}
