//! What becomes of a server that is offered more than it can do?

use apus_bench::overload::{self, Options};
use apus_testbed::process::Spawner;
use clap::{Args, Command};

use crate::failure::Failure;
use crate::output;
use crate::repetition::{Repetition, with_defaults};

/// Name of the command.
pub(super) const NAME: &str = "overload";

/// Open-loop requests from 0.25x to 4x of capacity: goodput and latency
///
/// The server computes for a fixed time on each request; requests come at random instants (Poisson), whether or
/// not earlier ones are done. Capacity is what apus completes with a few requests always under way. Goodput is what
/// was answered before the client lost patience. Whatever else became of requests is counted: refused by
/// the server, failed, answered too late, or dropped: not answered when the client left. A TCP server (epoll, the same cost, as many threads and
/// connections) does the same beside it. At last both have nothing to do for a second at a time: what an
/// idle server costs, and how soon it answers the first request after that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus bench overload
  apus bench overload --cost 100 --loads 0.75,1,2,4 --json
  apus bench overload --threads 2 --patience 10")]
pub(crate) struct Arguments {
    /// Payload bytes of a request and of its reply: 1 to 64000000
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    size: usize,
    /// Microseconds that the server computes on each request: 1 to 100000
    #[arg(long, value_name = "MICROSECONDS", allow_negative_numbers = true)]
    cost: f64,
    /// Threads of the server: 1 to 64
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    threads: usize,
    /// Milliseconds after which a reply is too late: 1 to 10000
    #[arg(long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    patience: f64,
    /// Loads as multiples of the capacity, with commas between them: 0.01 to 100 each, ascending
    #[arg(long, value_name = "LOADS", value_delimiter = ',', allow_negative_numbers = true)]
    loads: Vec<f64>,
    #[command(flatten)]
    repetition: Repetition,
}

/// Runs the experiment and prints its result.
pub(super) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { size, cost, threads, patience, loads, repetition } = arguments;
    let Repetition { seconds, runs, seed, poll, json } = repetition;
    let options = Options {
        size,
        cost_us: cost,
        threads,
        patience_ms: patience,
        loads,
        seconds,
        runs,
        seed,
        poll,
    };
    let outcome = overload::run(&options, &Spawner::this_program()?)?;
    if json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}

/// The command, with the lab's defaults.
pub(super) fn command() -> Command {
    let defaults = Options::default();
    let loads: Vec<String> = defaults.loads.iter().map(ToString::to_string).collect();
    with_defaults(
        Arguments::augment_args(Command::new(NAME)),
        [
            ("size", defaults.size.to_string()),
            ("cost", defaults.cost_us.to_string()),
            ("threads", defaults.threads.to_string()),
            ("patience", defaults.patience_ms.to_string()),
            ("loads", loads.join(",")),
            ("seconds", defaults.seconds.to_string()),
            ("runs", defaults.runs.to_string()),
            ("seed", defaults.seed.to_string()),
            ("poll", defaults.poll.to_string()),
        ],
    )
}
