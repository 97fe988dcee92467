//! Who is faster, when contenders take turns?

use apus_bench::contest::{EXPERIMENTS, Experiment, Options};
use apus_testbed::process::Spawner;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::configuration::Configuration;
use crate::driver::Driver;
use crate::failure::Failure;
use crate::output;
use crate::repetition::{Repetition, with_defaults};

/// An experiment, and what is asked of it.
#[derive(Debug)]
pub(crate) struct Arguments {
    experiment: &'static Experiment,
    asked: Asked,
    /// Whether the way to wait was asked for, and is not just what experiments do.
    poll_was_asked: bool,
}

/// What can be asked of any experiment.
#[derive(Debug, Args)]
struct Asked {
    /// Payload bytes of a request: 1 to 64000000
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    size: usize,
    /// Requests under way at the same time: 1 to 65536
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true)]
    outstanding: usize,
    /// Only these contenders, by the names of their rows, with commas between them. On request `apus-untraced` and
    /// `apus-traced` take part in `rtt` and `rate`: apus with time traces off, and with all RPCs traced
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// What carries the packets of apus; the other contenders go as ever
    #[arg(long, value_name = "DRIVER", value_enum, default_value_t = Driver::Udp)]
    driver: Driver,
    #[command(flatten)]
    configuration: Configuration,
    #[command(flatten)]
    repetition: Repetition,
}

/// What help says about an experiment.
struct Description {
    name: &'static str,
    /// One line.
    about: &'static str,
    /// What there is to know besides.
    more: &'static str,
    example: &'static str,
}

const DESCRIPTIONS: [Description; 4] = [
    Description {
        name: "rtt",
        about: "One client, one server, one request at a time",
        more: "The time from a request to its reply, over apus, over a bare UDP socket (unconnected, \
               the cheapest way to talk to many peers, and connected) and over TCP. Packets have the \
               same size on the wire.",
        example: "apus bench rtt --size 100 --seconds 1",
    },
    Description {
        name: "throughput",
        about: "Large messages, a few under way at a time",
        more: "Payload carried in one direction, and the processor time that it takes both sides, \
               over apus, over UDP with segmentation offload and over TCP.",
        example: "apus bench throughput --size 500000 --outstanding 8",
    },
    Description {
        name: "rate",
        about: "Small messages, many under way at a time, one core on each side",
        more: "Requests and replies completed in a second, over apus, over TCP with one system call \
               for each message, and over TCP with one for everything that is ready.",
        example: "apus bench rate --size 100 --outstanding 64",
    },
    Description {
        name: "handoff",
        about: "Wake-ups and handoffs per message, with 1 to 4 receiving threads",
        more: "How often a message crosses from the thread that received it to the one that waits \
               for it: never when the receiver polls itself, exactly once when another thread \
               does. Wake-ups for nothing are counted too.",
        example: "apus bench handoff --seconds 1",
    },
];

/// What help says about an experiment that nobody has described yet.
const UNDESCRIBED: Description =
    Description { name: "", about: "An experiment of apus-lab", more: "", example: "apus bench" };

/// Runs the experiment and prints its result.
pub(super) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { experiment, asked, poll_was_asked } = arguments;
    let Asked { size, outstanding, only, driver, configuration, repetition } = asked;
    driver.check_size("--size", size)?;
    let raw = driver == Driver::Raw;
    let Repetition { seconds, runs, seed, poll, json } = repetition;
    let settings = configuration.read()?;
    let poll = settings.poll.filter(|_| !poll_was_asked).unwrap_or(poll);
    let options = Options { size, outstanding, seconds, runs, seed, poll, settings, only, raw };
    let outcome = experiment.run(&options, &Spawner::this_program()?)?;
    if json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}

/// The command for one experiment.
fn command(experiment: &Experiment) -> Command {
    let found = DESCRIPTIONS.iter().find(|each| each.name == experiment.name);
    let Description { about, more, example, .. } = found.unwrap_or(&UNDESCRIBED);
    let defaults = (experiment.defaults)();
    let command = with_defaults(
        Asked::augment_args(Command::new(experiment.name)),
        [
            ("size", defaults.size.to_string()),
            ("outstanding", defaults.outstanding.to_string()),
            ("seconds", defaults.seconds.to_string()),
            ("runs", defaults.runs.to_string()),
            ("seed", defaults.seed.to_string()),
            ("poll", defaults.poll.to_string()),
        ],
    );
    command
        .about(*about)
        .long_about(format!("{about}\n\n{more}"))
        .after_help(format!("Examples:\n  {example}\n  {example} --json"))
}

/// One command for each experiment.
pub(super) fn commands() -> impl Iterator<Item = Command> {
    EXPERIMENTS.into_iter().map(command)
}

impl Arguments {
    /// What is asked of the experiment of that name; `None` if there is none.
    pub(super) fn of(name: &str, matches: &ArgMatches) -> Option<Result<Self, clap::Error>> {
        let experiment = EXPERIMENTS.into_iter().find(|each| each.name == name)?;
        let poll_was_asked = matches.value_source("poll") == Some(ValueSource::CommandLine);
        Some(Asked::from_arg_matches(matches).map(|asked| Self {
            experiment,
            asked,
            poll_was_asked,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_described() {
        for experiment in EXPERIMENTS {
            assert!(DESCRIPTIONS.iter().any(|each| each.name == experiment.name), "{experiment:?}");
        }
    }
}
