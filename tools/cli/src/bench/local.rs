//! What do messages between processes of one host cost?

use apus_bench::local::{self, Options};
use apus_testbed::process::Spawner;
use clap::{Args, Command};

use crate::failure::Failure;
use crate::output;
use crate::repetition::{Repetition, with_defaults};

/// Name of the command.
pub(super) const NAME: &str = "local";

/// Processes of one host: shared memory beside unix sockets and TCP
///
/// `apus-local` are endpoints, which take the path through shared memory by themselves when their peer is on the same
/// host; `apus-local-pair` is what they have below them, without an endpoint. `unix` is the faster kind of unix socket, figure
/// by figure in each run: of `unix-stream` (SOCK_STREAM) and `unix-seqpacket` (SOCK_SEQPACKET), whose packets are as long as a
/// socket's buffer at most. `tcp` is a connection over loopback with TCP_NODELAY, `apus-udp` endpoints over loopback that leave
/// shared memory alone. Sockets carry a length before each message, one send for each, and readers take what is
/// there; but servers of many clients use epoll and answer what is ready in one send. All wait as --poll says.
///
/// p50 and p99: one request and its echo at a time. krps: with --outstanding of them under way. Messages of 64 KiB and more are
/// large: at most 8 are under way, their replies are short, and gbps is what the server receives. Rows and ratios
/// show the first size, and gbps the largest one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus bench local
  apus bench local --size 1,100,4096,65536,1000000 --poll block
  apus bench local --workers 8 --clients 16 --only apus-local,unix,tcp --json")]
pub(crate) struct Arguments {
    /// Payload bytes of requests, with commas between them: 1 to 64000000 each
    #[arg(long, value_name = "BYTES", value_delimiter = ',', allow_negative_numbers = true)]
    size: Vec<usize>,
    /// Small requests under way at the same time: 1 to 65536
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true)]
    outstanding: usize,
    /// Also 1, 2, 4 … up to so many workers at a time, each with a connection of its own: a byte written and
    /// read by the same task, as unix1_processes of will-it-scale does it (kops: writes that were read), and a ping-pong of a
    /// byte between two tasks; 1 to 1024
    #[arg(long, value_name = "WORKERS", allow_negative_numbers = true)]
    workers: Option<usize>,
    /// Also 1, 2, 4 … up to so many clients of one server, --outstanding requests under way in sum: 1 to 1024
    #[arg(long, value_name = "CLIENTS", allow_negative_numbers = true)]
    clients: Option<usize>,
    /// Only these contenders, by the names of their rows, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    repetition: Repetition,
}

/// Runs the experiment and prints its result.
pub(super) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { size, outstanding, workers, clients, only, repetition } = arguments;
    let Repetition { seconds, runs, seed, poll, json } = repetition;
    let asked = |argument: &str, number: Option<usize>| match number {
        Some(0) => {
            let problem = "there is one at least; try 2".to_owned();
            Err(Failure::Argument { argument: argument.to_owned(), problem })
        }
        number => Ok(number.unwrap_or_default()),
    };
    let options = Options {
        sizes: size,
        outstanding,
        workers: asked("--workers", workers)?,
        clients: asked("--clients", clients)?,
        seconds,
        runs,
        seed,
        poll,
        only,
    };
    let findings = local::run(&options, &Spawner::this_program()?)?;
    if json { output::line(&findings.outcome.json()) } else { output::write(findings.to_string()) }
}

/// The command, with the lab's defaults.
pub(super) fn command() -> Command {
    let defaults = Options::default();
    let sizes: Vec<String> = defaults.sizes.iter().map(ToString::to_string).collect();
    with_defaults(
        Arguments::augment_args(Command::new(NAME)),
        [
            ("size", sizes.join(",")),
            ("outstanding", defaults.outstanding.to_string()),
            ("seconds", defaults.seconds.to_string()),
            ("runs", defaults.runs.to_string()),
            ("seed", defaults.seed.to_string()),
            ("poll", defaults.poll.to_string()),
        ],
    )
}
