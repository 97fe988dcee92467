//! `apus fs`: a directory served to other hosts, and mounted there.
//!
//! ```text
//!   serve                     a directory as a service
//!   mount, umount             a served directory in the tree of files
//!   status                    state of mounts and servers
//!
//!   helper                    arguments passed by mount(8)
//!   options                   the option list of -o
//!   exports                   the export list of --exports
//!   place                     a served directory as an argument
//!   daemon                    a process that outlives its command
//! ```

mod daemon;
mod exports;
mod helper;
mod mount;
mod options;
mod place;
mod serve;
mod status;
mod umount;

use clap::{Args, Subcommand};

use apus_command_line::failure::Failure;

pub(crate) use helper::translate;

/// Serve a directory to other hosts, and mount it there
///
/// Mounts of one directory see each other's changes at once, at the cost of one call where two of
/// them use the same file. Changes are collected, and sent in order: at most one second is not at
/// the server, unless a program asks for it with fsync. docs/fs/mounting.md explains options, fstab
/// and systemd units.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus fs serve /srv/shared --listen 10.0.0.1:4000 --trust 10.0.0.0/24
  apus fs mount 10.0.0.1:4000 /mnt/shared
  apus fs status
  apus fs umount /mnt/shared

In apus-lab: `apus fs bench` measures mounts beside other file systems, and `apus fs check` searches
for contradictions between several mounts."
)]
pub(crate) struct FsArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::FsServeArguments),
    Mount(mount::MountArguments),
    Umount(umount::UmountArguments),
    Status(status::StatusArguments),
}

/// Serves, mounts, unmounts or shows.
pub(crate) fn run(arguments: &FsArguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Mount(arguments) => mount::run(arguments),
        Command::Umount(arguments) => umount::run(arguments),
        Command::Status(arguments) => status::run(arguments),
    }
}
