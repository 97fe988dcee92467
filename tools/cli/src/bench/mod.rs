//! How fast is apus, beside UDP and TCP?
//!
//! ```text
//!   contest     contenders take turns: rtt, throughput, rate, handoff
//!   local       processes of one host, beside unix sockets
//!   overload    a server that is offered more than it can do
//!   cluster     hosts on links of a real rate, busy with the messages of a workload
//!   sweep       the same, once for each value of some settings
//!     asked       what can be asked of both
//!     hosts       where their hosts are
//!     results     where their results go
//! ```

mod asked;
mod cluster;
mod contest;
mod hosts;
mod local;
mod overload;
mod results;
mod sweep;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::failure::Failure;

/// What is to be measured.
#[derive(Debug)]
pub(crate) enum Arguments {
    Contest(contest::Arguments),
    Local(local::Arguments),
    Overload(overload::Arguments),
    Cluster(Box<cluster::Arguments>),
    Sweep(Box<sweep::Arguments>),
}

/// Runs the experiment and prints its result.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments {
        Arguments::Contest(arguments) => contest::run(arguments),
        Arguments::Local(arguments) => local::run(arguments),
        Arguments::Overload(arguments) => overload::run(arguments),
        Arguments::Cluster(arguments) => cluster::run(&arguments),
        Arguments::Sweep(arguments) => sweep::run(&arguments),
    }
}

/// One subcommand for each experiment.
impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        command
            .about("How fast is apus, beside UDP and TCP?")
            .long_about(
                "How fast is apus, beside UDP and TCP?\n\nThe contenders of an experiment take turns in one \
                 run, each side in a process of its own. Every figure is a median over the runs; ratios are \
                 computed inside each run. `cluster` and `sweep` measure on links that are busy; `local` what \
                 processes of one host have; the others on this machine's loopback, where apus goes over UDP as \
                 between hosts. Client and server are each on a core of its own if there are enough.",
            )
            .after_help(
                "Examples:\n  apus bench rtt\n  apus bench rate --json --runs 3\n  apus bench cluster \
                 --workload w4 --load 0.8",
            )
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(contest::commands())
            .subcommand(local::command())
            .subcommand(overload::command())
            .subcommand(cluster::command())
            .subcommand(sweep::command())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        match name {
            local::NAME => local::Arguments::from_arg_matches(matches).map(Self::Local),
            overload::NAME => overload::Arguments::from_arg_matches(matches).map(Self::Overload),
            cluster::NAME => cluster::Arguments::from_arg_matches(matches)
                .map(|arguments| Self::Cluster(Box::new(arguments))),
            sweep::NAME => sweep::Arguments::from_arg_matches(matches)
                .map(|arguments| Self::Sweep(Box::new(arguments))),
            name => contest::Arguments::of(name, matches).ok_or_else(missing)?.map(Self::Contest),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
