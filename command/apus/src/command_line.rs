//! The command line: all commands with their arguments, help texts and examples.

use std::env;
use std::ffi::OsString;

use apus_report::result::COMMIT;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::Failure;
#[cfg(feature = "top")]
use crate::top;
use crate::{
    bench, call, completions, decode, demo, doctor, fabric, fs, keys, lab, man, metrics, serve,
    sim, trace, tune,
};

/// Message transport with low tail latency: Homa in user space, over plain UDP.
///
/// Requests and responses of 0 bytes to 64 MB between processes, without connections and without
/// privileges. Start with `apus demo`: it shows in under a minute what apus does for tail latency on this machine.
#[derive(Debug, Parser)]
#[command(name = "apus", version = version(), after_help = "Examples:
  apus demo
  apus serve 127.0.0.1:4000
  apus call 127.0.0.1:4000 --size 100
  apus bench rtt --json
  apus sim run
  apus fabric up --nodes 4
  apus doctor

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
    Demo(demo::Arguments),
    Serve(serve::Arguments),
    Call(call::Arguments),
    Bench(Box<bench::Arguments>),
    Lab(lab::Arguments),
    Sim(sim::Arguments),
    Fabric(fabric::Arguments),
    Fs(fs::Arguments),
    Decode(decode::Arguments),
    Keys(keys::Arguments),
    Doctor(doctor::Arguments),
    Tune(tune::Arguments),
    Trace(trace::Arguments),
    Metrics(metrics::Arguments),
    #[cfg(feature = "top")]
    Top(top::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Returns a version such as `0.1.0 (0123456789ab)`, without the commit if the build did not record one.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    if COMMIT == "unknown" { version.to_owned() } else { format!("{version} ({COMMIT})") }
}

/// Returns all commands with their arguments, help texts and examples.
pub(crate) fn definitions() -> clap::Command {
    CommandLine::command().mut_subcommand("bench", bench::describe)
}

/// Parses the arguments of this process.
///
/// # Errors
///
/// [`Failure::CommandLine`] if the arguments are wrong, or if they ask for help.
pub(crate) fn parse() -> Result<Command, Failure> {
    parse_from(fs::translate(env::args_os()).into_iter()).map_err(Failure::CommandLine)
}

fn parse_from(arguments: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let mut definitions = definitions();
    let matches = definitions.try_get_matches_from_mut(arguments)?;
    let line = CommandLine::from_arg_matches(&matches);
    line.map(|line| line.command).map_err(|error| error.format(&mut definitions))
}

/// Returns a valid invocation of the command that this process was started with.
pub(crate) fn example() -> Option<String> {
    let definitions = definitions();
    let mut command = &definitions;
    for argument in fs::translate(env::args_os()).into_iter().skip(1) {
        command = command.find_subcommand(argument).unwrap_or(command);
    }
    examples(command).into_iter().next()
}

/// Returns the examples at the end of a command's help.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().map(str::trim).filter(|line| line.starts_with("apus "));
    lines.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        definitions().debug_assert();
    }

    /// The first example is printed when the arguments are wrong, so it must parse.
    #[test]
    fn every_command_has_examples_and_they_are_valid() {
        fn check(command: &clap::Command) {
            let examples = examples(command);
            assert!(!examples.is_empty(), "`{}` has no example", command.get_name());
            for example in examples {
                // The shell handles redirections.
                let line = example.split(" > ").next().unwrap_or_default();
                let words = shlex::split(line).unwrap_or_default().into_iter().map(OsString::from);
                parse_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
            command.get_subcommands().for_each(check);
        }
        check(&definitions());
    }

    #[test]
    fn every_argument_has_a_help_text() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let explained = argument.get_help().is_some();
                assert!(explained, "{} {}", command.get_name(), argument.get_id());
            }
            assert!(command.get_about().is_some(), "{}", command.get_name());
            command.get_subcommands().for_each(check);
        }
        check(&definitions());
    }
}
