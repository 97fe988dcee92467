//! What do settings do to short messages?

use std::path::PathBuf;

use apus_bench::cluster::{self, Setting};
use clap::{Args, Command};

use super::asked::{self, Asked};
use super::hosts::Hosts;
use super::results::{Results, Shown};
use crate::failure::Failure;

/// Name of the command.
pub(super) const NAME: &str = "sweep";

/// What do settings do to short messages? The cluster benchmark, once for each value
///
/// Each setting that has several values is varied by itself, while the others are what the options say; one with
/// a single value has it all the time. Settings are all parameters of apus (unsched_bytes, max_overcommit,
/// num_priorities, max_incoming, burst_bytes, max_nic_est_backlog_usecs, defer_min_bytes, grant_fifo_fraction,
/// receive_batch, ...; a wrong name lists them) and these options: buffer, client_max, link, load, loss, mtu, nodes,
/// ports, receivers, and poll_usecs, the microseconds for which threads spin before they sleep (0: they sleep at
/// once). `--link auto` is decided once; the base of slowdowns is found
/// once for each rate and MTU; transports other than apus are measured once if a parameter of apus is varied.
/// `apus sim run --param` does the same in the simulator.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done; 1 a transport has no run that succeeded with some value, or nothing \
could be
measured; 2 wrong arguments.

Examples:
  apus bench sweep --param poll_usecs=0,10,50 --transports apus,tcp
  apus bench sweep --workload w2 --param num_priorities=8,4,2,1 --html priorities.html
  apus bench sweep --param max_incoming=20000,60000 --param max_overcommit=1,2,8 --link 100mbit --out sweep.jsonl
  apus bench sweep --param load=0.5,0.6,0.7,0.8,0.9 --runs 3 --json"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// A setting and its values
    #[arg(long, value_name = "NAME=VALUE,VALUE", required = true)]
    param: Vec<Setting>,
    /// Keep what has been measured in this file, and take from it what is there already
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    hosts: Hosts,
    #[command(flatten)]
    results: Results,
}

/// Measures, prints the result and writes its files.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { asked, param, out, hosts, results } = arguments;
    let mut options = asked.options(&[])?;
    hosts.check(&options)?;
    if hosts.serve()? {
        return Ok(());
    }
    let results = results.open(asked.repetition.json)?;
    let venue = hosts.venue(asked.nodes, &mut options)?;
    let sweep = cluster::sweep(&options, param, &venue, out.as_deref())?;
    // Hosts are free before anything is shown.
    drop(venue);
    results.show(&Shown {
        outcome: &sweep.outcome,
        tables: &sweep,
        html: &|| sweep.html(),
        svg_files: &|| sweep.svg_files(),
        csv_files: &|| sweep.csv_files(),
        missing: &sweep.missing(),
    })
}

/// The command, with the lab's defaults.
pub(super) fn command() -> Command {
    asked::defaults(Arguments::augment_args(Command::new(NAME)))
}
