//! `apus-lab bench rtt`, `throughput`, `rate` and `handoff`: contenders measured in turns.

use apus_bench::contest::{Contest, ContestOptions};
use apus_measure::process::Spawner;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use apus_command_line::configuration::Configuration;
use apus_command_line::driver::Driver;
use apus_command_line::experiment::Results;
use apus_command_line::failure::Failure;

/// The arguments of a contest.
#[derive(Debug)]
pub(super) struct ContestArguments {
    declared: Declared,
    /// Whether `--poll` was given; the configuration overrides its default.
    poll_is_given: bool,
}

#[derive(Debug, Args)]
struct Declared {
    #[command(flatten)]
    options: ContestOptions,
    /// Driver that carries the packets of apus; the other contenders are unchanged
    #[arg(long, value_name = "DRIVER", value_enum, default_value_t = Driver::Udp)]
    driver: Driver,
    #[command(flatten)]
    configuration: Configuration,
    #[command(flatten)]
    results: Results,
}

impl ContestArguments {
    /// Runs the contest and shows its findings.
    pub(super) fn run(&self, contest: &Contest) -> Result<(), Failure> {
        let Declared { options, driver, configuration, results } = &self.declared;
        driver.check_size("--size", options.size)?;
        let mut options = options.clone();
        options.raw = *driver == Driver::Raw;
        options.settings = configuration.read()?;
        let configured = options.settings.poll.filter(|_| !self.poll_is_given);
        options.repetition.poll = configured.unwrap_or(options.repetition.poll);
        let results = results.open()?;
        results.show(&contest.run(&options, &Spawner::this_program()?)?)
    }
}

impl Args for ContestArguments {
    fn augment_args(command: Command) -> Command {
        Declared::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Declared::augment_args_for_update(command)
    }
}

impl FromArgMatches for ContestArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let poll_is_given = matches.value_source("poll") == Some(ValueSource::CommandLine);
        Ok(Self { declared: Declared::from_arg_matches(matches)?, poll_is_given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
