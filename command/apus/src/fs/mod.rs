//! `apus fs`: a directory served to other hosts, and mounted there.
//!
//! ```text
//!   serve                     a directory as a service
//!   mount, umount             a served directory in the tree of files
//!   status                    what mounts and servers do
//!   bench                     beside other file systems                          (apus-files)
//!   check                     consistency of several mounts                        (apus-files)
//!
//!   helper                    the arguments with which mount(8) calls this program
//!   options                   the list behind -o
//!   exports                   the list behind --exports
//!   place                     a served directory as an argument
//!   daemon                    a process that outlives its command
//! ```

mod check;
mod daemon;
mod exports;
mod helper;
mod mount;
mod options;
mod place;
mod serve;
mod status;
mod umount;

use apus_files::bench;
use clap::{Args, Subcommand};

use crate::experiment::Arguments as Experiment;
use crate::failure::Failure;

pub(crate) use helper::translate;

/// Serve a directory to other hosts, and mount it there
///
/// Mounts of one directory see each other's changes at once, at the cost of one call where two of them use the same file.
/// Changes are collected, and sent in order: at most one second is not at the server, unless a program asks for it with
/// fsync. docs/fs/mounting.md explains options, fstab and systemd units.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus fs serve /srv/shared --listen 10.0.0.1:4000 --trust 10.0.0.0/24
  apus fs mount 10.0.0.1:4000 /mnt/shared
  apus fs status
  apus fs umount /mnt/shared
  apus fs bench --rtt 2.3
  apus fs check /mnt/one /mnt/two"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Mount(mount::Arguments),
    Umount(umount::Arguments),
    Status(status::Arguments),
    Bench(Experiment<bench::Options>),
    Check(check::Arguments),
}

/// Serves, mounts, unmounts or shows.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Mount(arguments) => mount::run(arguments),
        Command::Umount(arguments) => umount::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Bench(experiment) => experiment.run(),
        Command::Check(arguments) => check::run(arguments),
    }
}
