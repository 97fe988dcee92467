//! The command line: all commands with their arguments, help texts and examples.

use std::ffi::OsString;

use apus_command_line::definitions::{self, version};
use apus_command_line::failure::Failure;
use apus_command_line::generated::{self, CompletionsArguments, ManArguments};
use clap::{CommandFactory, Parser, Subcommand};

use crate::{bench, demo, fabric, fs, lab, sim};

/// Measurements, simulations and proofs of apus, a message transport with low tail latency.
///
/// Start with `apus-lab demo`: it shows in under a minute what apus does for tail latency on this
/// machine.
#[derive(Debug, Parser)]
#[command(name = "apus-lab", version = version(), after_help = "Examples:
  apus-lab demo
  apus-lab bench rtt --json
  apus-lab sim run
  apus-lab fabric up --nodes 4

Exit status:
  0  the command succeeded
  1  the command failed, or found a fault
  2  the arguments are wrong

`apus-lab help COMMAND` explains a command and gives examples. Services, calls and diagnosis are in
`apus`.")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The commands, one per module of the same name.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArguments),
    Bench(Box<bench::BenchArguments>),
    Lab(lab::LabArguments),
    Sim(sim::SimArguments),
    Fabric(fabric::FabricArguments),
    Fs(fs::FsArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Returns all commands with their arguments, help texts and examples.
pub(crate) fn definitions() -> clap::Command {
    generated::describe(CommandLine::command().mut_subcommand("bench", bench::describe))
}

/// Parses the words of a command line, starting with the program's name.
///
/// # Errors
///
/// [`Failure::CommandLine`] if the arguments are wrong, or if they request help.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Command, Failure> {
    definitions::parse::<CommandLine>(definitions(), words).map(|line| line.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_complete_and_their_examples_are_valid() {
        apus_command_line::testing::check_definitions(&definitions(), parse);
    }
}
