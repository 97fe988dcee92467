//! Which old failures can be seen, and which cures?

mod contention;
mod handoff;
mod livelock;
mod small_writes;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Old failures of network software and their cures, measured on this machine
///
/// Each experiment brings about a failure that is known from the literature, with real packets and without
/// slowing anything down on purpose, and what cures it beside it.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus lab livelock --modes interrupt,apus
  apus lab handoff
  apus lab contention
  apus lab small-writes"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Livelock(livelock::Arguments),
    Handoff(handoff::Arguments),
    Contention(contention::Arguments),
    SmallWrites(small_writes::Arguments),
}

/// Runs an experiment and prints its result.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Livelock(arguments) => livelock::run(arguments),
        Command::Handoff(arguments) => handoff::run(arguments),
        Command::Contention(arguments) => contention::run(arguments),
        Command::SmallWrites(arguments) => small_writes::run(arguments),
    }
}
