//! The command line: all commands with their arguments, help texts and examples.

use std::ffi::OsString;

use apus_command_line::definitions::{self, version};
use apus_command_line::failure::Failure;
use apus_command_line::generated::{self, CompletionsArguments, ManArguments};
use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "top")]
use crate::top;
use crate::{call, decode, doctor, fs, keys, metrics, serve, trace, tune};

/// Message transport with low tail latency: Homa in user space, over plain UDP.
///
/// Requests and responses of 0 bytes to 64 MB between processes, without connections and without
/// privileges.
#[derive(Debug, Parser)]
#[command(name = "apus", version = version(), after_help = "In apus-lab, the program that measures and proves:
  demo, bench, sim, lab, fabric, fs bench, fs check    `apus demo` runs `apus-lab demo`

Examples:
  apus serve 127.0.0.1:4000
  apus call 127.0.0.1:4000 --size 100
  apus doctor
  apus top

Exit status:
  0  the command succeeded
  1  the command failed, or found a fault
  2  the arguments are wrong

`apus help COMMAND` explains a command and gives examples.")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// The commands, one per module of the same name.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::ServeArguments),
    Call(call::CallArguments),
    Fs(fs::FsArguments),
    Decode(decode::DecodeArguments),
    Keys(keys::KeysArguments),
    Doctor(Box<doctor::DoctorArguments>),
    Tune(Box<tune::TuneArguments>),
    Trace(trace::TraceArguments),
    Metrics(metrics::MetricsArguments),
    #[cfg(feature = "top")]
    Top(top::TopArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Returns all commands with their arguments, help texts and examples.
pub(crate) fn definitions() -> clap::Command {
    generated::describe(CommandLine::command())
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
