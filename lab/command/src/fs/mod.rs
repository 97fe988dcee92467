//! `apus-lab fs`: the file service measured and checked.
//!
//! ```text
//!   bench                 compared with other file systems                  (apus-files)
//!   check                 consistency of several mounts                     (apus-files)
//! ```

mod check;

use apus_command_line::experiment::ExperimentArguments as Experiment;
use apus_command_line::failure::Failure;
use apus_files::bench;
use clap::{Args, Subcommand};

/// Measure the file service beside other file systems, and check mounts for contradictions
///
/// `apus fs` serves directories and mounts them.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus-lab fs bench --rtt 2.3
  apus-lab fs check /mnt/one /mnt/two"
)]
pub(crate) struct FsArguments {
    #[command(subcommand)]
    command: FsCommand,
}

#[derive(Debug, Subcommand)]
enum FsCommand {
    Bench(Experiment<bench::BenchOptions>),
    Check(check::CheckArguments),
}

/// Measures or checks.
pub(crate) fn run(arguments: &FsArguments) -> Result<(), Failure> {
    match &arguments.command {
        FsCommand::Bench(experiment) => experiment.run(),
        FsCommand::Check(arguments) => check::run(arguments),
    }
}
