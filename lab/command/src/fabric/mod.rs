//! `apus-lab fabric`: a network of several hosts on this machine.

mod down;
mod exec;
mod hosts;
mod show;
mod up;

use clap::{Args, Subcommand};

use apus_command_line::failure::Failure;

/// Build a network of several hosts on this machine, to try programs in
///
/// Each host of a fabric is a network namespace with its own address. A switch connects the hosts;
/// its ports have the rate, the buffer and the eight strict priorities of a switch in a data
/// centre. The upper three bits of the DSCP select the priority, and 7 goes first. Nothing outside
/// the fabric is changed, and nothing of it remains when it ends, however it ends.
///
/// Root can build a fabric, and other users can where user namespaces are allowed. It needs
/// iproute2 and util-linux, and nftables for --loss.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus-lab fabric up --nodes 4
  apus-lab fabric exec h2 -- apus serve 10.77.0.2:4000
  apus-lab fabric exec h1 -- apus call 10.77.0.2:4000 --size 100
  apus-lab fabric show
  apus-lab fabric down"
)]
pub(crate) struct FabricArguments {
    #[command(subcommand)]
    command: FabricCommand,
}

#[derive(Debug, Subcommand)]
enum FabricCommand {
    Up(up::UpArguments),
    Down(down::DownArguments),
    Exec(exec::ExecArguments),
    Show(show::ShowArguments),
}

/// Builds or removes a fabric, runs a program in it, or shows its traffic.
pub(crate) fn run(arguments: &FabricArguments) -> Result<(), Failure> {
    match &arguments.command {
        FabricCommand::Up(arguments) => up::run(arguments),
        FabricCommand::Down(arguments) => down::run(arguments),
        FabricCommand::Exec(arguments) => exec::run(arguments),
        FabricCommand::Show(arguments) => show::run(arguments),
    }
}
