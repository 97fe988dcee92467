//! What comes out of a router while more and more goes in?

use std::env;

use apus_labs::livelock::{self, Filter, Mode, Options, Rates};
use clap::Args;

use crate::failure::Failure;
use crate::files::Files;
use crate::output;

/// What comes out of a router while more and more goes in?
///
/// Receive livelock, as Mogul and Ramakrishnan described it in 1996: a system that takes packets in at the
/// highest priority spends all of its time, past some rate, on packets that it then throws away. A router in a
/// program forwards IPv4 between two network namespaces on one core; a generator on the other one offers shortest
/// UDP packets at each rate; what comes out is counted by the kernel at the far interface. The
/// modes differ in who decides when the router receives: `interrupt` (input interrupts everything else),
/// `poll-no-quota`, `poll-quota=PACKETS` (`poll-quota` alone: 10), `poll-feedback` (and stops while
/// the filter's queue is long), `share=PERCENT` (and uses no more of the core), and `apus` (what the
/// engine of apus goes by, without privileges). It finds the highest rate that each carries without losses,
/// and says in words what is seen. Needs two cores, and root, or user namespaces and real-time priority.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus lab livelock
  apus lab livelock --modes interrupt,poll-quota=5,apus --filter without --html livelock.html
  apus lab livelock --modes share=25,share=50 --rates 100,300,900 --seconds 1
  apus lab livelock --train 10000 --runs 3 --json")]
pub(super) struct Arguments {
    /// Modes of the router, with commas between them: interrupt, poll-no-quota, poll-quota=PACKETS,
    /// poll-feedback, share=PERCENT, apus
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = all_modes())]
    modes: Vec<Mode>,
    /// Whether every packet passes a filter in a process of its own: `without`, `with`, or `both` in turn
    #[arg(long, value_name = "WHICH", default_value = "both")]
    filter: Filter,
    /// Thousands of packets offered per second, ascending, with commas between them; `auto` takes twelve rates
    /// up to what the generator can send
    #[arg(long, value_name = "RATES", default_value = "auto", allow_negative_numbers = true)]
    rates: Rates,
    /// Send trains of so many packets, 100 to 10000000, with pauses between them, instead of one after the
    /// other all the time
    #[arg(long, value_name = "PACKETS", allow_negative_numbers = true)]
    train: Option<u64>,
    /// Run a program beside the router that watches the network, and say how many packets it saw
    #[arg(long)]
    monitor: bool,
    /// Seconds of load for each rate of each mode in each run: 0.01 to 60
    #[arg(long, value_name = "SECONDS", default_value = "0.25", allow_negative_numbers = true)]
    seconds: f64,
    /// How often everything is repeated, 1 to 100; reported are the median over the runs, the least and the
    /// greatest
    #[arg(long, value_name = "RUNS", default_value = "5", allow_negative_numbers = true)]
    runs: usize,
    /// Where chance begins: the same seed draws the same hosts that packets go to
    #[arg(long, value_name = "NUMBER", default_value = "1", allow_negative_numbers = true)]
    seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: Files,
}

fn all_modes() -> String {
    Mode::all().iter().map(Mode::to_string).collect::<Vec<_>>().join(",")
}

/// Measures, prints the result and writes its files.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { modes, filter, rates, train, monitor, seconds, runs, seed, json, files } =
        arguments;
    let options = Options {
        modes: modes.clone(),
        filter: *filter,
        rates: rates.clone(),
        train: *train,
        monitor: *monitor,
        seconds: *seconds,
        runs: *runs,
        seed: *seed,
    };
    let files = files.open()?;
    let program = env::current_exe().map_err(|error| Failure::of("find this program", &error))?;
    let findings = livelock::run(&options, &program)?;
    files.fill(|| findings.html(), || findings.svg_files())?;
    if *json { output::line(&findings.outcome.json()) } else { output::write(findings.to_string()) }
}
