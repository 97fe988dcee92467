//! `apus-lab sim`: the protocol in a simulated fabric of many hosts.

mod check;
mod merge;
mod run;

use clap::{Args, Subcommand};

use apus_command_line::failure::Failure;

/// Simulate hosts that run the protocol unchanged, in a fabric of links and switches
///
/// The simulator runs the protocol core of the product on hundreds of hosts at once. The time of
/// the fabric is counted in nanoseconds, and a seed determines everything that is random: the same
/// command gives the same result on any machine.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus-lab sim run
  apus-lab sim run --workload w2,w4 --load 0.5,0.8 --out sweep.jsonl
  apus-lab sim merge part-0.jsonl part-1.jsonl
  apus-lab sim check --seeds 100"
)]
pub(crate) struct SimArguments {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    Run(Box<run::RunArguments>),
    Merge(merge::MergeArguments),
    Check(check::CheckArguments),
}

/// Executes the subcommand.
pub(crate) fn run(arguments: &SimArguments) -> Result<(), Failure> {
    match &arguments.command {
        SimCommand::Run(arguments) => run::run(arguments),
        SimCommand::Merge(arguments) => merge::run(arguments),
        SimCommand::Check(arguments) => check::run(arguments),
    }
}
