//! How is a network of several hosts had on one machine?

mod down;
mod exec;
mod settings;
mod show;
mod up;

pub(crate) use settings::Network;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// A network of several hosts on this machine, to try programs in
///
/// Each host is a network namespace with an address of its own; a switch connects them whose ports have the
/// rate, the buffer and the eight strict priorities that a switch in a data centre has (chosen by the
/// upper three bits of the DSCP, 7 first). Nothing outside of it is touched, and nothing of it stays when
/// it ends, however it ends. Root can make one, and others wherever user namespaces are allowed; it takes
/// iproute2 and util-linux, and nftables for --loss.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus fabric up --nodes 4
  apus fabric exec h2 -- apus serve 10.77.0.2:4000
  apus fabric exec h1 -- apus call 10.77.0.2:4000 --size 100
  apus fabric show
  apus fabric down"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Arguments),
    Down(down::Arguments),
    Exec(exec::Arguments),
    Show(show::Arguments),
}

/// Makes a network, removes it, runs something in it, or shows what it has carried.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Up(arguments) => up::run(arguments),
        Command::Down(arguments) => down::run(arguments),
        Command::Exec(arguments) => exec::run(arguments),
        Command::Show(arguments) => show::run(arguments),
    }
}
